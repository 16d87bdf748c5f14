/** The configuration: allowed values, sources, and error messages. */
import { Ajv } from "ajv";
import test from "ava";
import { execFileSync } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import { type Config, type ConfigSources, loadConfig, readSettings, type Settings } from "../../src/config/config.js";
import { configSchema } from "../../tools/docs/tables.js";
import { ConfigError } from "../../src/config/declare.js";
import { options } from "../../src/config/options.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { likeLists } from "../helpers/like-lists.js";

const isConfigFile = new Ajv().compile(JSON.parse(configSchema()) as object);

const load = (sources: Partial<ConfigSources> = {}): Config =>
  loadConfig({ flags: {}, env: {}, cwd: "/srv/node", ...sources });

/** Default value of each option, another value as text, and that value in the configuration. */
const values: Readonly<Record<string, readonly [fallback: unknown, text: string, value: unknown]>> = {
  "data-dir": ["/srv/node/data", "/d", "/d"],
  host: ["::", "0.0.0.0", "0.0.0.0"],
  "rpc-port": [53550, "1", 1],
  "omni-port": [53551, "2", 2],
  "metrics-enabled": [false, "true", true],
  "otlp-endpoint": [undefined, "http://127.0.0.1:4318", "http://127.0.0.1:4318"],
  "mcp-enabled": [false, "true", true],
  "metrics-port": [53590, "3", 3],
  "mcp-port": [3001, "0", 0],
  "public-url": [undefined, "https://n.example:9/", "https://n.example:9"],
  genesis: [undefined, "g.json", "/srv/node/g.json"],
  peers: [undefined, "p.json", "/srv/node/p.json"],
  "omni-url": [undefined, "https://n.example:8", "https://n.example:8"],
  "omni-tls": [true, "off", false],
  followers: [undefined, "listed", "listed"],
  "allow-private-peers": [false, "true", true],
  "tls-cert": [undefined, "c.pem", "/srv/node/c.pem"],
  "tls-key": [undefined, "k.pem", "/srv/node/k.pem"],
  "control-socket": ["/srv/node/data/control.sock", "s", "/srv/node/s"],
  "control-port": [undefined, "4", 4],
  database: ["sqlite:/srv/node/data/gatehouse.sqlite", "sqlite:x/y.db", "sqlite:/srv/node/x/y.db"],
  role: ["writer", "reader", "reader"],
  workers: [1, "4", 4],
  edge: ["compiled", "express", "express"],
  recover: [false, "true", true],
  sync: ["auto", "blocks", "blocks"],
  "snapshot-every": [1000, "0", 0],
  "retain-blocks": [0, "256", 256],
  "trusted-proxies": [[], "10.0.0.0/8, ::1", ["10.0.0.0/8", "::1"]],
  "identity-mode": ["signed", "trusted-header", "trusted-header"],
  "identity-form": ["any", "network", "network"],
  "rate-limit": [2000, "0", 0],
  "rate-limit-exempt": [["127.0.0.0/8", "::1/128"], "192.0.2.1", ["192.0.2.1"]],
  "sender-bytes-per-minute": [8_388_608, "1000000", 1_000_000],
  "sender-programs-per-minute": [60, "5", 5],
  "sender-leaves-per-minute": [60, "7", 7],
  writers: ["open", "listed", "listed"],
  "writers-file": [undefined, "writers.json", "/srv/node/writers.json"],
  "connections-per-address": [256, "0", 0],
  "streams-per-address": [100, "7", 7],
  "idle-timeout": [60_000, "620", 620_000],
  "shutdown-delay": [0, "5", 5_000],
  memory: [0, "256", 256],
  "port-drift": ["allow", "deny", "deny"],
  "loop-interval": [5000, "0.5", 500],
  "log-level": ["info", "silent", "silent"],
  json: [false, "true", true],
  "tlsnotary-enabled": [false, "true", true],
  "notary-keys": [[], `1:02${"a".repeat(64)}`, [`1:02${"a".repeat(64)}`]],
  "attestation-max-age": [0, "60", 60],
  "attestation-servers": [[], "a.example, b.example", ["a.example", "b.example"]],
  "notary-url": [undefined, "http://127.0.0.1:7047", "http://127.0.0.1:7047"],
  "notary-public-url": [undefined, "wss://n.example:7047/", "wss://n.example:7047"],
  "notary-proxy-url": [undefined, "ws://n.example:55688", "ws://n.example:55688"],
};

test("every option has its default, and can be set by a flag, a variable, a key of the file or a setting", async (t) => {
  t.deepEqual(
    Object.keys(values),
    options.map(({ name }) => name),
  );
  const defaults = Object.fromEntries(options.map(({ key, name }) => [key, values[name]![0]]));
  t.deepEqual<object, object>(load(), defaults);
  const file = join(await temporaryDirectory(t), "config.json");
  for (const { name, key, env } of options) {
    const [, text, value] = values[name]!;
    await writeFile(file, JSON.stringify({ [name]: text }));
    for (const [source, config] of Object.entries({
      flag: load({ flags: { [name]: text } }),
      variable: load({ env: { [env]: text } }),
      "file of --config": load({ flags: { config: file } }),
      "file of GATEHOUSE_CONFIG": load({ env: { GATEHOUSE_CONFIG: file } }),
      setting: readSettings({ [name]: text }, "/srv/node"),
    })) {
      t.deepEqual(config[key as keyof Config], value, `${source} ${name}`);
    }
    t.true(isConfigFile({ [name]: text }), `schema ${name}`);
    t.false(isConfigFile({ [name]: {} }), `schema ${name}`);
  }
});

test("readSettings ignores the environment, and rejects unknown names and invalid values", (t) => {
  process.env["GATEHOUSE_RPC_PORT"] = "1";
  t.teardown(() => delete process.env["GATEHOUSE_RPC_PORT"]);
  t.deepEqual(readSettings({}, "/srv/node"), load());
  t.deepEqual(readSettings({ "rpc-port": undefined }, "/srv/node"), load());
  likeLists(t, readSettings({ "trusted-proxies": ["10.0.0.1"], json: true, "loop-interval": 0.25 }, "/"), {
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
  likeLists(t, load({ flags: { config: file } }), {
    trustedProxies: ["10.0.0.1", "::1/128"],
    rpcPort: 7,
    json: true,
    loopIntervalMs: 250,
    databaseUrl: "postgres://a/g,postgres://b/g",
  });
  await writeFile(file, "");
  t.is(load({ flags: { config: file } }).rpcPort, 53550);
});

const port = "a whole number from 0 to 65535 (0 takes any free port)";
const unknown = (name: string): string => `The environment has the variable ${name}, which is not an option`;

test("rejects values that are not allowed, and unknown variables", (t) => {
  for (const [sources, message] of [
    ...["70000", "1e3", "0x10", "010", "-1", "8.5"].map(
      (text) => [{ flags: { "rpc-port": text } }, `--rpc-port must be ${port}, not "${text}".`] as const,
    ),
    [{ env: { GATEHOUSE_MCP_PORT: "x" } }, `--mcp-port (from GATEHOUSE_MCP_PORT) must be ${port}, not "x".`],
    [{ flags: { "port-drift": "maybe" } }, '--port-drift must be allow or deny, not "maybe".'],
    [
      { env: { TLSNOTARY_ENABLED: "yes" } },
      '--tlsnotary-enabled (from TLSNOTARY_ENABLED) must be true or false, not "yes".',
    ],
    [
      { flags: { "trusted-proxies": "10.0.0.0/33" } },
      '--trusted-proxies must be a comma-separated list of addresses and CIDR ranges, not "10.0.0.0/33".',
    ],
    [
      { flags: { database: "mysql://x" } },
      "--database must be sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/NAME, or several of these with commas " +
        'between them, not "mysql://x".',
    ],
    [
      { flags: { "public-url": "http://a:1/path" } },
      '--public-url must be http:// or https://, a host and a port, without a path, not "http://a:1/path".',
    ],
    [{ flags: { "loop-interval": "0" } }, '--loop-interval must be a number of seconds from 0.05 to 3600, not "0".'],
    [{ flags: { host: "" } }, '--host must be an IP address or a host name, not "".'],
    [{ flags: { config: "" } }, '--config must be a path, not "".'],
    [{ env: { GATEHOUSE_RPC_PROT: "1" } }, `${unknown("GATEHOUSE_RPC_PROT")}; did you mean GATEHOUSE_RPC_PORT.`],
    [
      { env: { GATEHOUSE_TLSNOTARY_ENABLED: "true" } },
      `${unknown("GATEHOUSE_TLSNOTARY_ENABLED")}; did you mean TLSNOTARY_ENABLED.`,
    ],
    [{ env: { GATEHOUSE_CONFIGS: "file" } }, `${unknown("GATEHOUSE_CONFIGS")}; did you mean GATEHOUSE_CONFIG.`],
    [{ env: { GATEHOUSE_NODE: "http://127.0.0.1:53550" } }, `${unknown("GATEHOUSE_NODE")}.`],
  ] as const) {
    t.throws(() => load(sources), { instanceOf: ConfigError, message });
  }
});

test("ignores empty variables, variables of other code and variables of other programs", (t) => {
  const env = { GATEHOUSE_NODE: "http://127.0.0.1:1", GATEHOUSE_RPC_PROT: "", PATH: "/bin", OTEL_SERVICE_NAME: "x" };
  t.deepEqual(load({ env, otherVariables: ["GATEHOUSE_NODE"] }), load());
});

test("errors in a configuration file name its path", async (t) => {
  const file = join(await temporaryDirectory(t), "config.yaml");
  for (const [content, message] of [
    ["rpc-prot: 1", '--config FILE has the key "rpc-prot", which is not an option; did you mean rpc-port.'],
    ["moon: 1", '--config FILE has the key "moon", which is not an option.'],
    ["- 1", "--config FILE must hold option names with their values, in YAML or JSON."],
    ["rpc-port: many", `--rpc-port (from FILE) must be ${port}, not "many".`],
    ["rpc-port: [1]", `--rpc-port (from FILE) must be ${port}, not [1].`],
    ["rpc-port: null", `--rpc-port (from FILE) must be ${port}, not null.`],
    ['{"rpc-port": 1', /^--config \S+ cannot be read: .*\.$/],
    ["rpc-port: 1\nrpc-port: 2\n", /^--config \S+ cannot be read: .*\.$/],
  ] as const) {
    await writeFile(file, content);
    const expected = typeof message === "string" ? message.replace("FILE", file) : message;
    t.throws(() => load({ flags: { config: file } }), { instanceOf: ConfigError, message: expected });
  }
  t.throws(() => load({ flags: { config: "/nowhere.yaml" } }), {
    message: /^--config \/nowhere.yaml cannot be read: ENOENT/,
  });
});

test("the error of a file that another user owns has advice", async (t) => {
  const file = join(await temporaryDirectory(t), "genesis.json");
  await writeFile(file, "[]");
  await chmod(file, 0);
  const script = `
    import { readGenesisFile, readPeersFile } from ${JSON.stringify(new URL("../../src/config/input-files.js", import.meta.url))};
    if (process.getuid() === 0) process.setuid(65534);
    for (const read of [readGenesisFile, readPeersFile]) await read(process.argv[1]).catch((error) => console.log(error.message));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", script, file], { encoding: "utf8" });
  const denied = `${file} cannot be read: EACCES: .*; make it readable by the user of the node, such as with chmod 644\\.\n`;
  t.regex(output, new RegExp(`^The genesis file ${denied}The peers file ${denied}$`));
});
