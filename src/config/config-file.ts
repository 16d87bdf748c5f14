/** The file of --config: options with their values, in YAML or JSON. */
import { readFileSync } from "node:fs";
import type * as Yaml from "yaml";
import { lazyRequire } from "../base/async/lazy-require.js";
import { ConfigError } from "./config-error.js";
import { options } from "./options.js";
import { suggest } from "./suggest.js";

/** Where a file is named: no other start waits for it. */
const yaml = lazyRequire<typeof Yaml>("yaml");

/**
 * The values of a configuration file by the names of their options, as they are written.
 *
 * @throws ConfigError when it cannot be read, or names what is no option.
 */
export function readConfigFile(path: string): ReadonlyMap<string, unknown> {
  let content: unknown;
  try {
    content = yaml().parse(readFileSync(path, "utf8"));
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    throw new ConfigError(`--config ${path} cannot be read: ${why.replace(/:$/, "")}.`);
  }
  if (content !== null && (typeof content !== "object" || Array.isArray(content))) {
    throw new ConfigError(`--config ${path} must hold option names with their values, in YAML or JSON.`);
  }
  return valuesByName(content ?? {}, `--config ${path} has`);
}

/**
 * The values of options by their names, as they are given.
 *
 * @param whoHas begins the sentence that refuses a name.
 * @throws ConfigError when one is named that is no option.
 */
export function valuesByName(given: object, whoHas: string): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>(Object.entries(given));
  for (const key of values.keys()) {
    if (!options.some(({ name }) => name === key)) {
      const meant = suggest(key, options, ({ name }) => name);
      throw new ConfigError(`${whoHas} the key "${key}", which is no option${meant}.`);
    }
  }
  return values;
}
