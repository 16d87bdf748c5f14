/** The load generator. It is installed with the other tools, of which `npm ci` installs none. */
import type load from "autocannon";
import { createRequire } from "node:module";
import { resolve } from "node:path";

export const autocannon = createRequire(resolve("tools/package.json"))("autocannon") as typeof load;
