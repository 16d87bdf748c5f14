/** Commands other than start: help, keygen, health, peers, devnet. Loaded modules and memory of commands. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { ask } from "../helpers/wire/plain-client.js";
import { healthShape } from "../helpers/process/health-shape.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { loadedBy, peakMemoryOf } from "../helpers/process/heap.js";
import { until } from "../helpers/nodes/until.js";
import { startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { cleanEnvironment, cliPath, runCli, runCliProcess } from "../helpers/nodes/run-cli.js";
import { startCli } from "../helpers/nodes/start-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { options } from "../../src/config/options.js";
import { version } from "../../src/base/version.js";

test("help lists every command, and every option with its variable", async (t) => {
  const help = await runCli([]);
  t.is(help.code, 0);
  for (const command of ["start", "devnet", "keygen", "health", "peers"]) {
    t.regex(help.stdout, new RegExp(`^  ${command} `, "m"));
    const page = await runCli([command, "--help"]);
    t.is(page.code, 0);
    t.regex(page.stdout, new RegExp(`Usage: gatehouse ${command} `));
  }
  const { stdout } = await runCli(["start", "--help"]);
  for (const { name, env } of options) {
    t.true(stdout.includes(`--${name}`) && stdout.includes(env), name);
  }
});

test("help, keygen and commands that query a node load no library of a node", async (t) => {
  const dir = await temporaryDirectory(t);
  const nowhere = ["--node", "http://127.0.0.1:1"];
  for (const args of [
    ["--version"],
    ["--help"],
    ["start", "--help"],
    ["keygen", "--data-dir", dir],
    ["health", ...nowhere],
    ["peers", ...nowhere],
    ["watch", ...nowhere],
    ["storage", "list", "0x", ...nowhere],
    ["storage", "history", "stor-", ...nowhere],
    ["tx", "list", ...nowhere],
    ["block", "list", ...nowhere],
    ["search", "guestbook", ...nowhere],
  ]) {
    const { packages, own } = await loadedBy(t, args);
    // leven is 2 KB.
    t.deepEqual(packages, ["commander", "leven"], args.join(" "));
    t.deepEqual(
      own.filter(
        (path) => !/^src\/(main|cli\/([a-z]+\/)?[a-z-]+|base\/([a-z]+\/)?[a-z0-9-]+|config\/[a-z-]+)$/.test(path),
      ),
      [],
      args.join(" "),
    );
  }
});

test("commands that sign, use the control service or open a database load only the modules they need", async (t) => {
  const { dependencies, optionalDependencies } = JSON.parse(await readFile("package.json", "utf8")) as {
    dependencies: object;
    optionalDependencies: object;
  };
  const dir = await temporaryDirectory(t);
  const key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  const signing = ["--network", `0x${"0".repeat(64)}`, "--key", key, "--node", "http://127.0.0.1:1"];
  const cases: readonly (readonly [args: readonly string[], packages: readonly string[], own: RegExp])[] = [
    [["storage", "create", "notes", ...signing], ["@noble/hashes"], /^src\/storage\/documents\/document-bounds$/],
    [["peers", "book", "--data-dir", dir], ["@connectrpc/connect", "@connectrpc/connect-node"], /^$/],
    [
      ["doctor", "--data-dir", dir],
      ["knex", "lru-cache", "zod"],
      /^src\/(chain|db|node|rpc\/errors|storage\/stores\/private)/,
    ],
    [
      ["verify-data", "--data-dir", dir],
      ["@noble/curves", "@noble/hashes", "knex", "lru-cache", "zod"],
      /^src\/(chain|db|node|snapshot\/sync-store|state|storage|tree|zk|rpc\/(errors|parameters))/,
    ],
  ];
  await Promise.all(
    cases.map(async ([args, packages, modules]) => {
      const loaded = await loadedBy(t, args);
      const name = args.slice(0, 2).join(" ");
      // Ignore the dependencies of packages.
      t.deepEqual(
        loaded.packages.filter((packageName) => packageName in dependencies || packageName in optionalDependencies),
        ["@bufbuild/protobuf", "commander", "leven", ...packages].sort(),
        name,
      );
      t.deepEqual(
        loaded.own.filter((path) => !/^(src\/(main$|cli|base|config)|gen\/)/.test(path) && !modules.test(path)),
        [],
        name,
      );
      t.false(loaded.own.includes("gen/google/rpc/error_details_pb"), name);
    }),
  );
});

test("commands that verify load the proof code, and no module of a node", async (t) => {
  const dir = await temporaryDirectory(t);
  const hash = `0x${"0".repeat(64)}`;
  const saved = join(dir, "proof.json");
  await writeFile(saved, "{}");
  const loadable = /^(src\/(main$|cli|base|config|light|rpc\/(codec|parameters|service)|storage|tree)|gen\/)/;
  for (const [args, packages] of [
    [
      ["storage", "get", "stor-", "--verify", hash, "--node", "http://127.0.0.1:1"],
      ["@connectrpc/connect", "@connectrpc/connect-node", "@noble/ed25519", "@noble/hashes"],
    ],
    [
      ["verify", saved, "--genesis", hash],
      ["@noble/ed25519", "@noble/hashes"],
    ],
  ] as const) {
    const loaded = await loadedBy(t, args);
    const expected = ["@bufbuild/protobuf", "commander", "leven", ...packages];
    t.deepEqual(loaded.packages, expected.sort(), args[0]);
    t.deepEqual(
      loaded.own.filter((path) => !loadable.test(path)),
      [],
      args[0],
    );
  }
});

test("commands that run no node use little more memory than Node.js itself", async (t) => {
  const dir = await temporaryDirectory(t);
  const { rpcUrl } = await startTestNode(t);
  const { mb: bare } = await peakMemoryOf(["-e", "0"]);
  // Limits in MB above the memory of Node.js. verify-data loads the most libraries, and finds no database. A growing young
  // generation would use 12 MB more there. The other commands would use 2 to 5 MB more without the V8 flags of main.ts.
  const [helpMb, healthMb, librariesMb] = process.versions.node.startsWith("20.") ? [10, 12, 36] : [20, 32, 46];
  for (const [args, maxMb, exitCode] of [
    [["--help"], helpMb, 0],
    [["health", "--node", rpcUrl], healthMb, 0],
    [["tx", "list", "--node", rpcUrl], healthMb, 0],
    [["verify-data", "--data-dir", dir], librariesMb, 2],
  ] as const) {
    const { mb, code } = await peakMemoryOf([cliPath, ...args]);
    t.is(code, exitCode, args[0]);
    t.log(args[0], (mb - bare).toFixed(1));
    t.true(mb < bare + maxMb, `${args[0]}: ${mb} MB, and Node.js ${bare} MB`);
  }
});

test("invalid options and commands end with code 2 and an error on stderr", async (t) => {
  for (const args of [
    ["start", "--moon"],
    ["moon"],
    ["start", "--rpc-port"],
    ["devnet", "--nodes", "0"],
    ["start", "--rpc-port", "x"],
  ]) {
    const { code, stdout, stderr } = await runCli(args);
    t.is(code, 2, args.join(" "));
    t.is(stdout, "");
    t.regex(stderr, /^(error: |gatehouse: )/);
  }
});

test("a process ends with the exit code of its command, and prints its output", async (t) => {
  const { rpcUrl } = await startMember(t);
  const health = await runCliProcess(["health"], { env: { GATEHOUSE_NODE: rpcUrl } });
  t.is(health.code, 0, health.stderr);
  t.regex(health.stdout, /^ok /);
  // V8 must not warn about unknown flags either.
  t.is(health.stderr, "");
  const invalid = await runCliProcess(["start", "--rpc-port", "x"]);
  t.is(invalid.code, 2);
  t.regex(invalid.stderr, /^gatehouse: /);
});

test("a command ends with code 0 if the reader of its output closes the pipe", async (t) => {
  const child = spawn(process.execPath, [cliPath, "--help"], {
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.destroy();
  t.deepEqual(await once(child, "close"), [0, null]);
});

test("keygen creates a key that only the owner can read, and never overwrites a key", async (t) => {
  const dir = await temporaryDirectory(t);
  const { code, stdout } = await runCli(["keygen", "--data-dir", dir, "--json"]);
  t.is(code, 0);
  const { publicKey, path } = JSON.parse(stdout) as { publicKey: string; path: string };
  t.is((await stat(path)).mode & 0o777, 0o600);
  const { x } = createPublicKey(createPrivateKey(await readFile(path))).export({ format: "jwk" });
  t.is(publicKey, `0x${Buffer.from(x ?? "", "base64url").toString("hex")}`);
  const again = await runCli(["keygen", "--data-dir", dir]);
  t.is(again.code, 1);
  t.regex(again.stderr, /^gatehouse: .* already has a key/);
  const { port } = await startTestNode(t, { "data-dir": dir }, dir);
  t.is((await ask(port, "/publickey")).text, JSON.stringify(publicKey));
});

test("health and peers show a running node, as tables and as JSON", async (t) => {
  const { rpcUrl, mainLoop } = await startMember(t);
  const text = await runCli(["health", "--node", rpcUrl]);
  t.is(text.code, 0);
  t.regex(text.stdout, new RegExp(`^ok {3}${version} "Barbican", up `));
  t.regex(text.stdout, /main_loop +ready/);
  t.notRegex(text.stdout, /\u001b/);
  const json = await runCli(["health", "--node", rpcUrl, "--json"]);
  t.is(healthShape.parse(JSON.parse(json.stdout)).status, "ok");
  const peers = await runCli(["peers"], { env: { GATEHOUSE_NODE: rpcUrl } });
  t.is(peers.code, 0);
  t.regex(peers.stdout, /https:\/\/127\.0\.0\.1:9 +unknown +offline +never/);
  t.is((JSON.parse((await runCli(["peers", "--node", rpcUrl, "--json"])).stdout) as unknown[]).length, 1);
  await mainLoop.stop("the test ended it");
  const failing = await runCli(["health", "--node", rpcUrl]);
  t.is(failing.code, 1);
  t.regex(failing.stdout, /^failing /);
  t.regex(failing.stdout, /exited: the test ended it/);
});

test("commands end with code 3 if no node responds", async (t) => {
  const node = await startTestNode(t);
  const { rpcUrl } = node;
  await node.stop();
  for (const command of ["health", "peers"]) {
    const { code, stderr } = await runCli([command, "--node", rpcUrl]);
    t.is(code, 3);
    t.is(stderr, `gatehouse: No node responds at ${rpcUrl}: connection refused.\n`);
  }
  t.is((await runCli(["health", "--node", "nonsense"])).code, 2);
});

test("two nodes of a devnet discover each other, and SIGINT stops them with code 0", async (t) => {
  const { child, port, ended, stdout, stderr } = await startCli(t, ["devnet", "--rpc-port", "54550"]);
  while (!stdout().includes("network-ready")) {
    await new Promise((resolve) => child.stdout?.once("data", resolve));
  }
  const requestPeers = async () =>
    JSON.parse((await ask(port, "/peerlist")).text) as {
      status: { ready: boolean };
      sync: { block: number };
      identity: string;
    }[];
  // Wait until the first node knows that the other one has the block of the samples.
  await until(async () => (await requestPeers()).every(({ status, sync }) => status.ready && sync.block >= 1));
  const peers = await requestPeers();
  t.is(peers.length, 1);
  t.like(peers[0], { status: { online: true } });
  t.regex(peers[0]!.identity, /^0x[0-9a-f]{64}$/);
  t.is((JSON.parse((await ask(port, "/health")).text) as { status: string }).status, "ok");
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stderr(), "");
});
