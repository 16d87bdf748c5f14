/** The load generator. `npm run tools` installs it, so it is loaded when there is something to measure. */
import type load from "autocannon";
import type { Options, Result } from "autocannon";
import { createRequire } from "node:module";
import { resolve } from "node:path";

/** Puts load on a server, and returns what the clients saw. */
export async function autocannon(options: Options): Promise<Result> {
  const run = createRequire(resolve("tools/packages/package.json"))("autocannon") as typeof load;
  return await run(options);
}
