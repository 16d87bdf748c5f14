/** The modules that a command loads. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runCliProcess } from "../nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../nodes/teardown.js";

/**
 * Runs a command in a separate process. Returns the packages that it loads, and the modules of `src/` and `gen/`.
 */
export async function loadedBy(t: Teardown, args: readonly string[]): Promise<{ packages: string[]; own: string[] }> {
  // Node.js writes its coverage there, which lists all loaded scripts.
  const dir = await temporaryDirectory(t);
  await runCliProcess(args, { env: { NODE_V8_COVERAGE: dir } });
  const [file] = await readdir(dir);
  const { result } = JSON.parse(await readFile(join(dir, file!), "utf8")) as { result: { url: string }[] };
  const paths = (pattern: RegExp): string[] => [
    ...new Set(result.flatMap(({ url }) => pattern.exec(url)?.[1] ?? []).sort()),
  ];
  return {
    packages: paths(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//),
    own: paths(/\/dist\/((?:src|gen)\/.*)\.js$/),
  };
}
