/** The configuration: flags before environment before file before defaults, checked once. */
import { z } from "zod";
import { ConfigError } from "./config-error.js";
import { readConfigFile, valuesByName } from "./config-file.js";
import { fallbackOf, type Option, type SettingsOf, type ValuesOf } from "./declare.js";
import { configFile, options, type optionsByKey } from "./options.js";
import { readEnvironment, refuseUnknownVariables } from "./variables.js";

/** What a node is started with, as the options are declared. Paths are absolute. */
export type Config = ValuesOf<typeof optionsByKey>;

/** Options by their names, as a program gives them: each may be what the configuration file may hold. */
export type Settings = SettingsOf<typeof optionsByKey>;

type FlagName = (typeof optionsByKey)[keyof typeof optionsByKey]["name"] | (typeof configFile)["name"];

/** Where settings come from. */
export interface ConfigSources {
  /** Flags by option name; what was not given is undefined. */
  readonly flags: Readonly<Partial<Record<FlagName, string | boolean>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables that begin like those of options and belong to others, who read them themselves. */
  readonly otherVariables?: readonly string[];
  /** Directory that relative paths start from. */
  readonly cwd: string;
}

/** The process's own environment and working directory. */
export function processSources(given: Pick<ConfigSources, "flags" | "otherVariables">): ConfigSources {
  return { ...given, env: readEnvironment(), cwd: process.cwd() };
}

/**
 * Reads the configuration.
 *
 * @throws ConfigError
 */
export function loadConfig(sources: ConfigSources): Config {
  refuseUnknownVariables(sources.env, sources.otherVariables);
  const file = openFile(sources);
  return readOptions((option) => pick(option, sources, file), sources.cwd);
}

/** Path of the configuration file; undefined where none is named. */
export function pathOfConfigFile(sources: ConfigSources): string | undefined {
  return openFile(sources)?.path;
}

/**
 * The configuration of settings alone: neither flags nor the environment are looked at.
 *
 * @param cwd directory that relative paths start from.
 * @throws ConfigError
 */
export function readSettings(settings: Settings, cwd: string): Config {
  const values = valuesByName(settings, "The settings have");
  return readOptions(({ name }) => {
    const given = values.get(name);
    return given === undefined ? undefined : [given, "the settings"];
  }, cwd);
}

/** A value as it was given, and by what. */
type GivenValue = readonly [value: unknown, from: string];

function readOptions(pickValue: (option: Option) => GivenValue | undefined, cwd: string): Config {
  const values = new Map<string, unknown>();
  for (const option of options) {
    const [given, from] = pickValue(option) ?? [fallbackOf(option, (name) => values.get(name)), "default"];
    values.set(option.name, given === undefined ? undefined : read(option, given, from, cwd));
  }
  // The type says of each option what its declaration gives, and here each has what its declaration gave.
  return Object.fromEntries(options.map(({ key, name }) => [key, values.get(name)])) as unknown as Config;
}

interface ConfigFile {
  readonly path: string;
  readonly values: ReadonlyMap<string, unknown>;
}

function openFile(sources: ConfigSources): ConfigFile | undefined {
  const found = pick(configFile, sources);
  if (found === undefined) {
    return undefined;
  }
  const path = read(configFile, ...found, sources.cwd) as string;
  return { path, values: readConfigFile(path) };
}

/** The value of an option; undefined when none was given. An empty variable gives nothing. */
function pick(
  { name, env: variable }: Option,
  { flags, env }: ConfigSources,
  file?: ConfigFile,
): GivenValue | undefined {
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

function read({ name, type }: Option, given: unknown, source: string, cwd: string): unknown {
  const { success, data } = type.schema(z).safeParse(given);
  if (!success) {
    const from = source === "flag" ? "" : ` (from ${source})`;
    throw new ConfigError(`--${name}${from} must be ${type.allowed}, not ${show(given)}.`);
  }
  return type.resolve === undefined ? data : type.resolve(data, cwd);
}

function show(value: unknown): string {
  const shown = value === undefined ? "nothing" : JSON.stringify(value);
  return shown.length > 100 ? `${shown.slice(0, 100)}…` : shown;
}
