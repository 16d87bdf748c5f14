/** Configuration loader. Precedence: flags, environment, file, defaults. Each value is checked once. */
import { readFileSync } from "node:fs";
import type * as Yaml from "yaml";
import { z } from "zod";
import { lazyRequire } from "../base/async/lazy-require.js";
import { errorMessage } from "../base/errors/error-message.js";
import { ConfigError, fallbackOf, type Option, type SettingsOf, type ValuesOf } from "./declare.js";
import { configFile, options, type optionsByKey } from "./options.js";
import { rejectUnknownVariables, suggest } from "./variables.js";

/** Loaded lazily, since only a start with --config needs the parser. */
const yaml = lazyRequire<typeof Yaml>("yaml");

/** Configuration of a node, with a field for each declared option. Paths are absolute. */
export type Config = ValuesOf<typeof optionsByKey>;

/** Options by name, as passed by a program. Each accepts the same values as the configuration file. */
export type Settings = SettingsOf<typeof optionsByKey>;

type FlagName = (typeof optionsByKey)[keyof typeof optionsByKey]["name"] | (typeof configFile)["name"];

export interface ConfigSources {
  /** Flags by option name; undefined if not given. */
  readonly flags: Readonly<Partial<Record<FlagName, string | boolean | undefined>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables with the prefix of the options that other code reads itself. */
  readonly otherVariables?: readonly string[];
  /** Base directory of relative paths. */
  readonly cwd: string;
}

/** Loads and checks the configuration. Throws ConfigError. */
export function loadConfig(sources: ConfigSources): Config {
  rejectUnknownVariables(sources.env, sources.otherVariables);
  const path = pathOfConfigFile(sources);
  const inFile = path === undefined ? new Map<string, unknown>() : readConfigFile(path);
  const find = (option: Option): SourcedValue | undefined =>
    findValue(option, sources) ?? (inFile.has(option.name) ? [inFile.get(option.name), path!] : undefined);
  return readOptions(find, sources.cwd);
}

/** Reads the configuration from settings alone, without flags and environment. Throws ConfigError. */
export function readSettings(settings: Settings, cwd: string): Config {
  const values = valuesByName(settings, "The settings have");
  return readOptions(({ name }) => {
    const value = values.get(name);
    return value === undefined ? undefined : [value, "the settings"];
  }, cwd);
}

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

/** Returns the path of the configuration file; undefined if none is configured. */
export function pathOfConfigFile(sources: ConfigSources): string | undefined {
  const found = findValue(configFile, sources);
  return found && (checkValue(configFile, ...found, sources.cwd) as string);
}

/** Returns the value of a flag or variable; undefined if neither is set. An empty variable counts as not set. */
function findValue({ name, env: variable }: Option, { flags, env }: ConfigSources): SourcedValue | undefined {
  const fromFlag = (flags as Readonly<Record<string, string | boolean | undefined>>)[name];
  if (fromFlag !== undefined) {
    return [fromFlag, "flag"];
  }
  const fromEnv = env[variable] ?? "";
  return fromEnv === "" ? undefined : [fromEnv, variable];
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

/** Returns the unchecked values of a configuration file, in YAML or JSON, by option name. Throws ConfigError. */
function readConfigFile(path: string): ReadonlyMap<string, unknown> {
  let content: unknown;
  try {
    content = yaml().parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConfigError(`--config ${path} cannot be read: ${errorMessage(error).replace(/:$/, "")}.`);
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
 */
function valuesByName(settings: object, messageStart: string): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>(Object.entries(settings));
  const unknown = [...values.keys()].find((key) => !options.some(({ name }) => name === key));
  if (unknown !== undefined) {
    const suggestion = suggest(unknown, options, ({ name }) => name);
    throw new ConfigError(`${messageStart} the key "${unknown}", which is not an option${suggestion}.`);
  }
  return values;
}
