/** The generated contract. It is found by listing files, so that none can be forgotten. */
import type { DescFile, DescService } from "@bufbuild/protobuf";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL("../../../gen/gatehouse/", import.meta.url));

/** Returns the descriptors of all generated files of the project, sorted by name. */
export async function contractFiles(): Promise<DescFile[]> {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith("_pb.js"));
  const modules = await Promise.all(paths.sort().map((path) => import(`${directory}${path}`) as Promise<object>));
  return modules.flatMap((module) =>
    Object.values(module).filter((value: Partial<DescFile> | undefined): value is DescFile => value?.kind === "file"),
  );
}

/** Returns all services of the contract, without those of tests. */
export async function contractServices(): Promise<DescService[]> {
  const services = (await contractFiles()).flatMap((file) => file.services);
  return services.filter(({ typeName }) => !typeName.startsWith("gatehouse.testing."));
}
