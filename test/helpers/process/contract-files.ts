/** The contract as it was generated: found by looking, so that a new file or service cannot be forgotten. */
import type { DescFile, DescService } from "@bufbuild/protobuf";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL("../../../gen/gatehouse/", import.meta.url));

/** Descriptors of every generated file of our own, in the order of their names. */
export async function contractFiles(): Promise<DescFile[]> {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith("_pb.js"));
  const modules = await Promise.all(paths.sort().map((path) => import(`${directory}${path}`) as Promise<object>));
  return modules.flatMap((module) =>
    Object.values(module).filter((value: Partial<DescFile> | undefined): value is DescFile => value?.kind === "file"),
  );
}

/** Every service of the contract: those that only tests serve are none. */
export async function contractServices(): Promise<DescService[]> {
  const services = (await contractFiles()).flatMap((file) => file.services);
  return services.filter(({ typeName }) => !typeName.startsWith("gatehouse.testing."));
}
