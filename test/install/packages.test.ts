/** The install scripts that `npm ci` and `npm run tools` may run. */
import test from "ava";
import { readFile } from "node:fs/promises";

interface Lock {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
}

for (const folder of [".", "tools/packages"]) {
  const read = async <T>(file: string): Promise<T> => JSON.parse(await readFile(`${folder}/${file}`, "utf8")) as T;

  test(`every install script below ${folder} is allowed or blocked by name, and none collects telemetry`, async (t) => {
    const { packages } = await read<Lock>("package-lock.json");
    const { allowScripts } = await read<{ allowScripts: Record<string, boolean> }>("package.json");
    const withScripts = Object.keys(packages)
      .filter((path) => packages[path]!.hasInstallScript)
      .map((path) => path.replace(/^.*node_modules\//, ""))
      .filter((name) => name !== "" && name !== "client");
    t.true(withScripts.length > 0);
    t.deepEqual([...new Set(withScripts)].filter((name) => !(name in allowScripts)).sort(), []);
    t.deepEqual(
      Object.keys(packages).filter((path) => path.includes("@scarf/")),
      [],
    );
  });
}
