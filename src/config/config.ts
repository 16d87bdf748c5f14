/** Configuration loader. Precedence: flags, environment, file, defaults. Each value is checked once. */
import { z } from "zod";
import { ConfigError } from "./config-error.js";
import { readConfigFile, valuesByName } from "./config-file.js";
import { fallbackOf, type Option, type SettingsOf, type ValuesOf } from "./declare.js";
import { configFile, options, type optionsByKey } from "./options.js";
import { readEnvironment, rejectUnknownVariables } from "./variables.js";

/** Configuration of a node, with a field for each declared option. Paths are absolute. */
export type Config = ValuesOf<typeof optionsByKey>;

/** Options by name, as passed by a program. Each accepts the same values as the configuration file. */
export type Settings = SettingsOf<typeof optionsByKey>;

type FlagName = (typeof optionsByKey)[keyof typeof optionsByKey]["name"] | (typeof configFile)["name"];

/** Sources of the settings. */
export interface ConfigSources {
  /** Flags by option name; undefined if not given. */
  readonly flags: Readonly<Partial<Record<FlagName, string | boolean | undefined>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables with the prefix of the options that other code reads itself. */
  readonly otherVariables?: readonly string[];
  /** Base directory of relative paths. */
  readonly cwd: string;
}

/** Returns sources with the environment and the working directory of the process. */
export function processSources(sources: Pick<ConfigSources, "flags" | "otherVariables">): ConfigSources {
  return { ...sources, env: readEnvironment(), cwd: process.cwd() };
}

/**
 * Loads and checks the configuration.
 *
 * @throws ConfigError
 */
export function loadConfig(sources: ConfigSources): Config {
  rejectUnknownVariables(sources.env, sources.otherVariables);
  const file = loadConfigFile(sources);
  return readOptions((option) => findValue(option, sources, file), sources.cwd);
}

/** Returns the path of the configuration file; undefined if none is configured. */
export function pathOfConfigFile(sources: ConfigSources): string | undefined {
  return loadConfigFile(sources)?.path;
}

/**
 * Reads the configuration from settings alone, without flags and environment.
 *
 * @param cwd Base directory of relative paths.
 * @throws ConfigError
 */
export function readSettings(settings: Settings, cwd: string): Config {
  const values = valuesByName(settings, "The settings have");
  return readOptions(({ name }) => {
    const value = values.get(name);
    return value === undefined ? undefined : [value, "the settings"];
  }, cwd);
}

/** Unchecked value and its source. */
type SourcedValue = readonly [value: unknown, source: string];

function readOptions(findOption: (option: Option) => SourcedValue | undefined, cwd: string): Config {
  const values = new Map<string, unknown>();
  for (const option of options) {
    const [value, source] = findOption(option) ?? [fallbackOf(option, (name) => values.get(name)), "default"];
    values.set(option.name, value === undefined ? undefined : checkValue(option, value, source, cwd));
  }
  // `Config` types each field by its declaration, and each value above was read by the same declaration.
  return Object.fromEntries(options.map(({ key, name }) => [key, values.get(name)])) as unknown as Config;
}

interface ConfigFile {
  readonly path: string;
  readonly values: ReadonlyMap<string, unknown>;
}

/** Reads the file that --config or its variable names; undefined if neither is set. */
function loadConfigFile(sources: ConfigSources): ConfigFile | undefined {
  const found = findValue(configFile, sources);
  if (found === undefined) {
    return undefined;
  }
  const path = checkValue(configFile, ...found, sources.cwd) as string;
  return { path, values: readConfigFile(path) };
}

/** Returns the value of an option; undefined if none is set. An empty variable counts as not set. */
function findValue(
  { name, env: variable }: Option,
  { flags, env }: ConfigSources,
  file?: ConfigFile,
): SourcedValue | undefined {
  const fromFlag = (flags as Readonly<Record<string, string | boolean | undefined>>)[name];
  if (fromFlag !== undefined) {
    return [fromFlag, "flag"];
  }
  const fromEnv = env[variable];
  if (fromEnv !== undefined && fromEnv !== "") {
    return [fromEnv, variable];
  }
  return file?.values.has(name) === true ? [file.values.get(name), file.path] : undefined;
}

/** Converts a value to the type of its option. Throws ConfigError if the value is not allowed. */
function checkValue({ name, type }: Option, value: unknown, source: string, cwd: string): unknown {
  const { success, data } = type.schema(z).safeParse(value);
  if (!success) {
    const from = source === "flag" ? "" : ` (from ${source})`;
    throw new ConfigError(`--${name}${from} must be ${type.allowed}, not ${formatValue(value)}.`);
  }
  return type.resolve === undefined ? data : type.resolve(data, cwd);
}

function formatValue(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
