/** Reader of the --config file: options and their values, in YAML or JSON. */
import { readFileSync } from "node:fs";
import type * as Yaml from "yaml";
import { lazyRequire } from "../base/async/lazy-require.js";
import { ConfigError } from "./config-error.js";
import { options } from "./options.js";
import { suggest } from "./suggest.js";

/** Loaded lazily, since only a start with --config needs the parser. */
const yaml = lazyRequire<typeof Yaml>("yaml");

/**
 * Returns the unchecked values of a configuration file by option name.
 *
 * @throws ConfigError if the file cannot be read or names an unknown option.
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
 * Returns the unchecked values of an object by option name.
 *
 * @param messageStart Start of the error message about an unknown name, such as "The settings have".
 * @throws ConfigError if the object names an unknown option.
 */
export function valuesByName(settings: object, messageStart: string): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>(Object.entries(settings));
  for (const key of values.keys()) {
    if (!options.some(({ name }) => name === key)) {
      const suggestion = suggest(key, options, ({ name }) => name);
      throw new ConfigError(`${messageStart} the key "${key}", which is not an option${suggestion}.`);
    }
  }
  return values;
}
