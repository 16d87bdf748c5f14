/** The configuration: allowed values, sources, and error messages. */
import { Ajv } from "ajv";
import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import { type Config, type ConfigSources, loadConfig, readSettings, type Settings } from "../../src/config/config.js";
import { configSchema } from "../../tools/docs/config-schema.js";
import { ConfigError } from "../../src/config/config-error.js";
import { options } from "../../src/config/options.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const isConfigFile = new Ajv().compile(JSON.parse(configSchema()) as object);

const load = (sources: Partial<ConfigSources> = {}): Config =>
  loadConfig({ flags: {}, env: {}, cwd: "/srv/node", ...sources });

test("the configuration consists of defaults if no option is set", (t) => {
  t.deepEqual(load(), {
    dataDir: "/srv/node/data",
    host: "::",
    rpcPort: 53550,
    omniPort: 53551,
    metricsEnabled: false,
    otlpEndpoint: undefined,
    mcpEnabled: false,
    metricsPort: 9090,
    mcpPort: 3001,
    publicUrl: undefined,
    genesisFile: undefined,
    peersFile: undefined,
    omniUrl: undefined,
    omniTls: true,
    edge: "compiled",
    followers: undefined,
    allowPrivatePeers: false,
    tlsCertFile: undefined,
    tlsKeyFile: undefined,
    controlSocket: "/srv/node/data/control.sock",
    controlPort: undefined,
    databaseUrl: "sqlite:/srv/node/data/gatehouse.sqlite",
    role: "writer",
    recover: false,
    workers: 1,
    sync: "auto",
    snapshotEvery: 1000,
    retainBlocks: 0,
    trustedProxies: [],
    identityMode: "signed",
    identityForm: "any",
    rateLimitPerMinute: 2000,
    senderBytesPerMinute: 8_388_608,
    senderProgramsPerMinute: 60,
    senderLeavesPerMinute: 60,
    writers: "open",
    writersFile: undefined,
    rateLimitExempt: ["127.0.0.0/8", "::1/128"],
    connectionsPerAddress: 256,
    streamsPerAddress: 100,
    memoryMib: 0,
    portDrift: "allow",
    loopIntervalMs: 5000,
    logLevel: "info",
    json: false,
    tlsnotaryEnabled: false,
    notaryKeys: [],
    attestationMaxAgeS: 0,
    attestationServers: [],
    notaryUrl: undefined,
    notaryPublicUrl: undefined,
    notaryProxyUrl: undefined,
  });
});

test("every option can be set by a flag, a variable, a key of the file or a setting", async (t) => {
  const values: Record<string, [text: string, key: keyof Config, value: unknown]> = {
    "data-dir": ["/d", "dataDir", "/d"],
    host: ["0.0.0.0", "host", "0.0.0.0"],
    "rpc-port": ["1", "rpcPort", 1],
    "omni-port": ["2", "omniPort", 2],
    "metrics-enabled": ["true", "metricsEnabled", true],
    "otlp-endpoint": ["http://127.0.0.1:4318", "otlpEndpoint", "http://127.0.0.1:4318"],
    "mcp-enabled": ["true", "mcpEnabled", true],
    "metrics-port": ["3", "metricsPort", 3],
    "mcp-port": ["0", "mcpPort", 0],
    "public-url": ["https://n.example:9/", "publicUrl", "https://n.example:9"],
    genesis: ["g.json", "genesisFile", "/srv/node/g.json"],
    peers: ["p.json", "peersFile", "/srv/node/p.json"],
    "omni-url": ["https://n.example:8", "omniUrl", "https://n.example:8"],
    "omni-tls": ["off", "omniTls", false],
    followers: ["listed", "followers", "listed"],
    "allow-private-peers": ["true", "allowPrivatePeers", true],
    "tls-cert": ["c.pem", "tlsCertFile", "/srv/node/c.pem"],
    "tls-key": ["k.pem", "tlsKeyFile", "/srv/node/k.pem"],
    "control-socket": ["s", "controlSocket", "/srv/node/s"],
    "control-port": ["4", "controlPort", 4],
    database: ["sqlite:x/y.db", "databaseUrl", "sqlite:/srv/node/x/y.db"],
    role: ["reader", "role", "reader"],
    workers: ["4", "workers", 4],
    edge: ["express", "edge", "express"],
    recover: ["true", "recover", true],
    sync: ["blocks", "sync", "blocks"],
    "snapshot-every": ["0", "snapshotEvery", 0],
    "retain-blocks": ["256", "retainBlocks", 256],
    "trusted-proxies": ["10.0.0.0/8, ::1", "trustedProxies", ["10.0.0.0/8", "::1"]],
    "identity-mode": ["trusted-header", "identityMode", "trusted-header"],
    "identity-form": ["network", "identityForm", "network"],
    "rate-limit": ["0", "rateLimitPerMinute", 0],
    "rate-limit-exempt": ["192.0.2.1", "rateLimitExempt", ["192.0.2.1"]],
    "sender-bytes-per-minute": ["1000000", "senderBytesPerMinute", 1_000_000],
    "sender-programs-per-minute": ["5", "senderProgramsPerMinute", 5],
    "sender-leaves-per-minute": ["7", "senderLeavesPerMinute", 7],
    writers: ["listed", "writers", "listed"],
    "writers-file": ["writers.json", "writersFile", "/srv/node/writers.json"],
    "connections-per-address": ["0", "connectionsPerAddress", 0],
    "streams-per-address": ["7", "streamsPerAddress", 7],
    memory: ["256", "memoryMib", 256],
    "port-drift": ["deny", "portDrift", "deny"],
    "loop-interval": ["0.5", "loopIntervalMs", 500],
    "log-level": ["silent", "logLevel", "silent"],
    json: ["true", "json", true],
    "tlsnotary-enabled": ["true", "tlsnotaryEnabled", true],
    "notary-keys": [`1:02${"a".repeat(64)}`, "notaryKeys", [`1:02${"a".repeat(64)}`]],
    "attestation-max-age": ["60", "attestationMaxAgeS", 60],
    "attestation-servers": ["a.example, b.example", "attestationServers", ["a.example", "b.example"]],
    "notary-url": ["http://127.0.0.1:7047", "notaryUrl", "http://127.0.0.1:7047"],
    "notary-public-url": ["wss://n.example:7047/", "notaryPublicUrl", "wss://n.example:7047"],
    "notary-proxy-url": ["ws://n.example:55688", "notaryProxyUrl", "ws://n.example:55688"],
  };
  t.deepEqual(
    Object.keys(values),
    options.map(({ name }) => name),
  );
  const file = join(await temporaryDirectory(t), "config.json");
  for (const { name, env } of options) {
    const [text, key, value] = values[name]!;
    t.deepEqual(load({ flags: { [name]: text } })[key], value, `flag ${name}`);
    t.deepEqual(load({ env: { [env]: text } })[key], value, env);
    await writeFile(file, JSON.stringify({ [name]: text }));
    t.deepEqual(load({ flags: { config: file } })[key], value, `file ${name}`);
    t.deepEqual(load({ env: { GATEHOUSE_CONFIG: file } })[key], value, `file ${name}`);
    t.deepEqual(readSettings({ [name]: text }, "/srv/node")[key], value, `setting ${name}`);
    t.true(isConfigFile({ [name]: text }), `schema ${name}`);
    t.false(isConfigFile({ [name]: {} }), `schema ${name}`);
  }
});

test("readSettings ignores the environment, and rejects unknown names and invalid values", (t) => {
  process.env["GATEHOUSE_RPC_PORT"] = "1";
  t.teardown(() => delete process.env["GATEHOUSE_RPC_PORT"]);
  t.deepEqual(readSettings({}, "/srv/node"), load());
  t.deepEqual(readSettings({ "rpc-port": undefined }, "/srv/node"), load());
  t.like(readSettings({ "trusted-proxies": ["10.0.0.1"], json: true, "loop-interval": 0.25 }, "/"), {
    trustedProxies: ["10.0.0.1"],
    json: true,
    loopIntervalMs: 250,
  });
  for (const [settings, message] of [
    [
      { "rpc-port": 70_000 },
      "--rpc-port (from the settings) must be a whole number from 0 to 65535 (0 takes any free port), not 70000.",
    ],
    [{ rpcPort: 1 }, 'The settings have the key "rpcPort", which is not an option; did you mean rpc-port.'],
    [{ config: "c.json" }, 'The settings have the key "config", which is not an option.'],
  ] as const) {
    t.throws(() => readSettings(settings as Settings, "/"), { instanceOf: ConfigError, message });
  }
});

test("the example configuration names the JSON Schema, which the package includes", async (t) => {
  const [line = ""] = (await readFile("examples/config.yaml", "utf8")).split("\n");
  const [, named = ""] = /^# yaml-language-server: \$schema=(\S+)$/.exec(line) ?? [];
  t.deepEqual(JSON.parse(await readFile(join("examples", named), "utf8")), JSON.parse(configSchema()));
  const { files } = JSON.parse(await readFile("package.json", "utf8")) as { files: string[] };
  t.true(files.includes(join("examples", named)));
});

test("the JSON Schema accepts and rejects the same files as the node", async (t) => {
  const example: unknown = parseYaml(await readFile("examples/config.yaml", "utf8"));
  t.true(isConfigFile(example));
  t.like(load({ flags: { config: resolve("examples/config.yaml") } }), { rpcPort: 53550, trustedProxies: [] });
  const file = join(await temporaryDirectory(t), "config.json");
  for (const [content, isValid] of [
    [{ "trusted-proxies": ["10.0.0.1", "::1/128"], "rpc-port": 7, json: true, "loop-interval": 0.25 }, true],
    [{}, true],
    [{ "rpc-prot": 7 }, false],
    [{ "rpc-port": 70_000 }, false],
    [{ "rpc-port": 0.5 }, false],
    [{ "rpc-port": "many" }, false],
    [{ "rpc-port": null }, false],
    [{ "loop-interval": 0 }, false],
    [{ json: 1 }, false],
    [{ role: "author" }, false],
    [{ sync: "fast" }, false],
    [{ "retain-blocks": 255 }, false],
    [{ "omni-tls": true }, false],
    [{ database: "mysql://x" }, false],
    [{ "notary-keys": ["1:02"] }, false],
    [["rpc-port"], false],
  ] as const) {
    await writeFile(file, JSON.stringify(content));
    t.is(isConfigFile(content), isValid, JSON.stringify(content));
    const loadFile = () => load({ flags: { config: file } });
    if (isValid) {
      t.notThrows(loadFile);
    } else {
      t.throws(loadFile, { instanceOf: ConfigError }, JSON.stringify(content));
    }
  }
});

test("only two variables have names that do not derive from their option", (t) => {
  t.deepEqual(
    options
      .filter(({ name, env }) => env !== `GATEHOUSE_${name.toUpperCase().replaceAll("-", "_")}`)
      .map(({ env }) => env),
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "TLSNOTARY_ENABLED"],
  );
});

test("a file may have lists, numbers and booleans in YAML form, and may be empty", async (t) => {
  const file = join(await temporaryDirectory(t), "config.yaml");
  await writeFile(
    file,
    'trusted-proxies: [10.0.0.1, "::1/128"]\nrpc-port: 7\njson: true\nloop-interval: 0.25\n' +
      'database: ["postgres://a/g", "postgres://b/g"]\n',
  );
  t.like(load({ flags: { config: file } }), {
    trustedProxies: ["10.0.0.1", "::1/128"],
    rpcPort: 7,
    json: true,
    loopIntervalMs: 250,
    databaseUrl: "postgres://a/g,postgres://b/g",
  });
  await writeFile(file, "");
  t.is(load({ flags: { config: file } }).rpcPort, 53550);
});

const rejects = test.macro({
  exec(t, sources: Partial<ConfigSources>, message: string) {
    t.throws(() => load(sources), { instanceOf: ConfigError, message });
  },
  title: (_, __, message: string) => `rejects with: ${message}`,
});

const port = "a whole number from 0 to 65535 (0 takes any free port)";
test(rejects, { flags: { "rpc-port": "70000" } }, `--rpc-port must be ${port}, not "70000".`);
test(rejects, { flags: { "rpc-port": "1e3" } }, `--rpc-port must be ${port}, not "1e3".`);
test(rejects, { flags: { "rpc-port": "0x10" } }, `--rpc-port must be ${port}, not "0x10".`);
test(rejects, { flags: { "rpc-port": "-1" } }, `--rpc-port must be ${port}, not "-1".`);
test(rejects, { flags: { "rpc-port": "8.5" } }, `--rpc-port must be ${port}, not "8.5".`);
test(rejects, { env: { GATEHOUSE_MCP_PORT: "x" } }, `--mcp-port (from GATEHOUSE_MCP_PORT) must be ${port}, not "x".`);
test(rejects, { flags: { "port-drift": "maybe" } }, '--port-drift must be allow or deny, not "maybe".');
test(
  rejects,
  { env: { TLSNOTARY_ENABLED: "yes" } },
  '--tlsnotary-enabled (from TLSNOTARY_ENABLED) must be true or false, not "yes".',
);
test(
  rejects,
  { flags: { "trusted-proxies": "10.0.0.0/33" } },
  '--trusted-proxies must be a comma-separated list of addresses and CIDR ranges, not "10.0.0.0/33".',
);
test(
  rejects,
  { flags: { database: "mysql://x" } },
  "--database must be sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/NAME, or several of these with commas between " +
    'them, not "mysql://x".',
);
test(
  rejects,
  { flags: { "public-url": "http://a:1/path" } },
  '--public-url must be http:// or https://, a host and a port, without a path, not "http://a:1/path".',
);
test(
  rejects,
  { flags: { "loop-interval": "0" } },
  '--loop-interval must be a number of seconds from 0.05 to 3600, not "0".',
);
test(rejects, { flags: { host: "" } }, '--host must be an IP address or a host name, not "".');

test(
  rejects,
  { env: { GATEHOUSE_RPC_PROT: "1" } },
  "The environment has the variable GATEHOUSE_RPC_PROT, which is not an option; did you mean GATEHOUSE_RPC_PORT.",
);
test(
  rejects,
  { env: { GATEHOUSE_TLSNOTARY_ENABLED: "true" } },
  "The environment has the variable GATEHOUSE_TLSNOTARY_ENABLED, which is not an option; did you mean TLSNOTARY_ENABLED.",
);
test(
  rejects,
  { env: { GATEHOUSE_CONFIGS: "file" } },
  "The environment has the variable GATEHOUSE_CONFIGS, which is not an option; did you mean GATEHOUSE_CONFIG.",
);
test(
  rejects,
  { env: { GATEHOUSE_NODE: "http://127.0.0.1:53550" } },
  "The environment has the variable GATEHOUSE_NODE, which is not an option.",
);
test(rejects, { flags: { config: "" } }, '--config must be a path, not "".');

test("ignores empty variables, variables of other code and variables of other programs", (t) => {
  const env = { GATEHOUSE_NODE: "http://127.0.0.1:1", GATEHOUSE_RPC_PROT: "", PATH: "/bin", OTEL_SERVICE_NAME: "x" };
  t.deepEqual(load({ env, otherVariables: ["GATEHOUSE_NODE"] }), load());
});

test("errors in a configuration file name its path", async (t) => {
  const file = join(await temporaryDirectory(t), "config.yaml");
  const messageFor = async (content: string): Promise<string> => {
    await writeFile(file, content);
    return t.throws(() => load({ flags: { config: file } }), { instanceOf: ConfigError }).message.replace(file, "FILE");
  };
  t.is(
    await messageFor("rpc-prot: 1"),
    '--config FILE has the key "rpc-prot", which is not an option; did you mean rpc-port.',
  );
  t.is(await messageFor("moon: 1"), '--config FILE has the key "moon", which is not an option.');
  t.is(await messageFor("- 1"), "--config FILE must hold option names with their values, in YAML or JSON.");
  t.is(await messageFor("rpc-port: many"), `--rpc-port (from FILE) must be ${port}, not "many".`);
  t.is(await messageFor("rpc-port: [1]"), `--rpc-port (from FILE) must be ${port}, not [1].`);
  t.is(await messageFor("rpc-port: null"), `--rpc-port (from FILE) must be ${port}, not null.`);
  t.regex(await messageFor('{"rpc-port": 1'), /^--config FILE cannot be read: .*\.$/);
  t.regex(await messageFor("rpc-port: 1\nrpc-port: 2\n"), /^--config FILE cannot be read: .*\.$/);
  t.throws(() => load({ flags: { config: "/nowhere.yaml" } }), {
    message: /^--config \/nowhere.yaml cannot be read: ENOENT/,
  });
});
