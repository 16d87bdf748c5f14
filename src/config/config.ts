/**
 * The configuration: flags before environment before file before defaults, checked once. This is the only reader of
 * the environment.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import type { LogLevelName } from "../base/log.js";
import { type Option, options } from "./options.js";

/** What a node is started with. Paths are absolute. */
export interface Config {
  readonly dataDir: string;
  readonly host: string;
  readonly rpcPort: number;
  readonly omniPort: number;
  readonly metricsEnabled: boolean;
  readonly otlpEndpoint: string | undefined;
  readonly mcpEnabled: boolean;
  readonly metricsPort: number;
  readonly mcpPort: number;
  /** scheme://host:port, or undefined to make it from host and port. */
  readonly publicUrl: string | undefined;
  readonly genesisFile: string | undefined;
  readonly peersFile: string | undefined;
  /** scheme://host:port, or undefined to make it. */
  readonly omniUrl: string | undefined;
  readonly omniTls: boolean;
  readonly allowPrivatePeers: boolean;
  /** Of use only with the other. */
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly controlSocket: string;
  /** Undefined for none. */
  readonly controlPort: number | undefined;
  /** `sqlite:` and an absolute path. */
  readonly databaseUrl: string;
  readonly trustedProxies: readonly string[];
  readonly identityMode: "signed" | "trusted-header";
  /** 0 limits nothing. */
  readonly rateLimitPerMinute: number;
  readonly rateLimitExempt: readonly string[];
  readonly portDrift: "allow" | "deny";
  /** A reader applies nothing. */
  readonly role: "writer" | "reader";
  readonly loopIntervalMs: number;
  readonly logLevel: LogLevelName;
  readonly json: boolean;
  readonly tlsnotaryEnabled: boolean;
  /** `1:hex` of each. */
  readonly notaryKeys: readonly string[];
  /** 0 for any age. */
  readonly attestationMaxAgeS: number;
  /** Any when empty. */
  readonly attestationServers: readonly string[];
  readonly notaryUrl: string | undefined;
}

/** A wrong setting; the message is one sentence that names the option, its source and what is allowed. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Where settings come from. */
export interface ConfigSources {
  /** Flags by option name; what was not given is undefined. */
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory that relative paths start from. */
  readonly cwd: string;
}

/** The process's own environment and working directory. */
export function processSources(flags: ConfigSources["flags"]): ConfigSources {
  return { flags, env: process.env, cwd: process.cwd() };
}

/**
 * Reads the configuration.
 *
 * @throws ConfigError
 */
export function loadConfig({ flags, env, cwd }: ConfigSources): Config {
  const file = readConfigFile(flags.config ?? env.GATEHOUSE_CONFIG, cwd);
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the option's schema gives this type
  const read = <T>(name: (typeof options)[number]["name"]): T => {
    const option: Option = options.find((candidate) => candidate.name === name)!;
    const [value, source] = pick(option);
    return value === undefined ? (undefined as T) : (check(option, value, source) as T);
  };
  const pick = (option: Option): [unknown, string] => {
    if (flags[option.name] !== undefined) {
      return [flags[option.name], "flag"];
    }
    const fromEnv = env[option.env];
    if (fromEnv !== undefined && fromEnv !== "") {
      return [fromEnv, option.env];
    }
    return file.values.has(option.name) ? [file.values.get(option.name), file.path] : [option.fallback, "default"];
  };
  const path = (
    name: "data-dir" | "genesis" | "peers" | "tls-cert" | "tls-key" | "control-socket",
  ): string | undefined => {
    const value = read<string | undefined>(name);
    return value === undefined ? undefined : resolve(cwd, value);
  };

  const dataDir = path("data-dir")!;
  const database = read<string | undefined>("database");
  return {
    dataDir,
    host: read("host"),
    rpcPort: read("rpc-port"),
    omniPort: read("omni-port"),
    metricsEnabled: read("metrics-enabled"),
    otlpEndpoint: read("otlp-endpoint"),
    mcpEnabled: read("mcp-enabled"),
    metricsPort: read("metrics-port"),
    mcpPort: read("mcp-port"),
    publicUrl: read("public-url"),
    genesisFile: path("genesis"),
    peersFile: path("peers"),
    omniUrl: read("omni-url"),
    omniTls: read("omni-tls") === "on",
    allowPrivatePeers: read("allow-private-peers"),
    tlsCertFile: path("tls-cert"),
    tlsKeyFile: path("tls-key"),
    controlSocket: path("control-socket") ?? join(dataDir, "control.sock"),
    controlPort: read("control-port"),
    databaseUrl:
      database === undefined
        ? `sqlite:${join(dataDir, "gatehouse.sqlite")}`
        : database.replace(/^sqlite:(.*)$/s, (_, path: string) => `sqlite:${resolve(cwd, path)}`),
    trustedProxies: read("trusted-proxies"),
    identityMode: read("identity-mode"),
    rateLimitPerMinute: read("rate-limit"),
    rateLimitExempt: read("rate-limit-exempt"),
    portDrift: read("port-drift"),
    role: read("role"),
    loopIntervalMs: Math.round(read<number>("loop-interval") * 1000),
    logLevel: read("log-level"),
    json: read("json"),
    tlsnotaryEnabled: read("tlsnotary-enabled"),
    notaryKeys: read("notary-keys"),
    attestationMaxAgeS: read("attestation-max-age"),
    attestationServers: read("attestation-servers"),
    notaryUrl: read("notary-url"),
  };
}

function check(option: Option, value: unknown, source: string): unknown {
  const result = option.schema.safeParse(value);
  if (!result.success) {
    const from = source === "flag" ? "" : ` (from ${source})`;
    throw new ConfigError(`--${option.name}${from} must be ${option.allowed}, not ${show(value)}.`);
  }
  return result.data;
}

function show(value: unknown): string {
  const shown = value === undefined ? "nothing" : JSON.stringify(value);
  return shown.length > 100 ? `${shown.slice(0, 100)}…` : shown;
}

interface ConfigFile {
  readonly path: string;
  readonly values: ReadonlyMap<string, unknown>;
}

function readConfigFile(given: string | boolean | undefined, cwd: string): ConfigFile {
  if (typeof given !== "string") {
    return { path: "", values: new Map() };
  }
  const path = resolve(cwd, given);
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
  const names = options.map(({ name }) => name);
  for (const key of values.keys()) {
    if (!names.some((name) => name === key)) {
      throw new ConfigError(`--config ${path} has the key "${key}", which is no option${suggest(key, names)}.`);
    }
  }
  return { path, values };
}

function suggest(given: string, names: readonly string[]): string {
  const [nearest] = names
    .map((name) => ({ name, distance: editDistance(given.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  return nearest !== undefined && nearest.distance <= Math.ceil(given.length / 4)
    ? `; did you mean ${nearest.name}`
    : "";
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}
