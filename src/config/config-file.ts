/** The file of --config: options with their values, in YAML or JSON. */
import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { ConfigError } from "./config-error.js";
import { options } from "./options.js";
import { suggest } from "./suggest.js";

/**
 * The values of a configuration file by the names of their options, as they are written.
 *
 * @throws ConfigError when it cannot be read, or names what is no option.
 */
export function readConfigFile(path: string): ReadonlyMap<string, unknown> {
  let content: unknown;
  try {
    content = parseYaml(readFileSync(path, "utf8"));
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    throw new ConfigError(`--config ${path} cannot be read: ${why.replace(/:$/, "")}.`);
  }
  if (content !== null && (typeof content !== "object" || Array.isArray(content))) {
    throw new ConfigError(`--config ${path} must hold option names with their values, in YAML or JSON.`);
  }
  const values = new Map<string, unknown>(Object.entries(content ?? {}));
  for (const key of values.keys()) {
    if (!options.some(({ name }) => name === key)) {
      const meant = suggest(key, options, ({ name }) => name);
      throw new ConfigError(`--config ${path} has the key "${key}", which is no option${meant}.`);
    }
  }
  return values;
}
