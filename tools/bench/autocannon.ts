/** Load generator, loaded on first use because only `npm run tools` installs it. */
import type load from "autocannon";
import type { Options, Result } from "autocannon";
import { createRequire } from "node:module";
import { resolve } from "node:path";

/** Applies load to a server. Returns the results of the clients. */
export async function autocannon(options: Options): Promise<Result> {
  const run = createRequire(resolve("tools/packages/package.json"))("autocannon") as typeof load;
  return await run(options);
}
