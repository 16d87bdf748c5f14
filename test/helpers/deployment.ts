/** What the tests of deploy/ have in common. */
import { type Config, loadConfig } from "../../src/config/config.js";
import { options } from "../../src/config/options.js";

/** The configuration of a node that is started with these variables, all of which must be options. */
export function configOf(env: Readonly<Record<string, string>>): Config {
  const unknown = Object.keys(env).filter((name) => !options.some((option) => option.env === name));
  if (unknown.length > 0) {
    throw new Error(`no options: ${unknown.join(", ")}`);
  }
  return loadConfig({ flags: {}, env, cwd: "/" });
}

/** A configuration of which nothing is set. */
export const defaults = configOf({});
