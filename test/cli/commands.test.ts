/** The commands beside start: help, keygen, health, peers, devnet. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { ask } from "../helpers/wire/plain-client.js";
import { healthShape } from "../helpers/process/health-shape.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { peakMemoryOf } from "../helpers/process/peak-memory.js";
import { until } from "../helpers/nodes/until.js";
import { startMember } from "../helpers/nodes/start-member.js";
import { loadedBy } from "../helpers/process/loaded-modules.js";
import { cleanEnvironment, cliPath, runCli, runCliProcess } from "../helpers/nodes/run-cli.js";
import { startCli } from "../helpers/nodes/start-cli.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { options } from "../../src/config/options.js";
import { versionPattern } from "../helpers/process/version.js";

test("help teaches: every command, every option with its variable and default", async (t) => {
  const help = await runCli([]);
  t.is(help.code, 0);
  for (const command of ["start", "devnet", "keygen", "health", "peers"]) {
    t.regex(help.stdout, new RegExp(`^  ${command} `, "m"));
    const own = await runCli([command, "--help"]);
    t.is(own.code, 0);
    t.regex(own.stdout, new RegExp(`Usage: gatehouse ${command} `));
  }
  const { stdout } = await runCli(["start", "--help"]);
  for (const { name, env } of options) {
    t.true(stdout.includes(`--${name}`) && stdout.includes(env), name);
  }
});

test("a command loads what it needs, and no library of a node", async (t) => {
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

test("a command that signs, talks to the control service or opens a database loads what that takes, and no more", async (t) => {
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
    cases.map(async ([args, packages, room]) => {
      const loaded = await loadedBy(t, args);
      const name = args.slice(0, 2).join(" ");
      // What a package brings with it is its own affair.
      t.deepEqual(
        loaded.packages.filter((one) => one in dependencies || one in optionalDependencies),
        ["@bufbuild/protobuf", "commander", "leven", ...packages].sort(),
        name,
      );
      t.deepEqual(
        loaded.own.filter((path) => !/^(src\/(main$|cli|base|config)|gen\/)/.test(path) && !room.test(path)),
        [],
        name,
      );
      t.false(loaded.own.includes("gen/google/rpc/error_details_pb"), name);
    }),
  );
});

test("a command that verifies loads what checks proofs, and nothing of a node", async (t) => {
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

test("a command that does not run a node holds little more memory than Node.js itself", async (t) => {
  const dir = await temporaryDirectory(t);
  const { rpcUrl } = await startTestNode(t);
  const { mb: bare } = await peakMemoryOf(["-e", "0"]);
  // The last one loads most of all, and finds nothing to look at; with a growing room for young objects it is 12 more. The
  // others are 2 to 5 more with all that V8 compiles otherwise.
  const [help, health, libraries] = process.versions.node.startsWith("20.") ? [10, 12, 36] : [20, 32, 46];
  for (const [args, most, exitCode] of [
    [["--help"], help, 0],
    [["health", "--node", rpcUrl], health, 0],
    [["tx", "list", "--node", rpcUrl], health, 0],
    [["verify-data", "--data-dir", dir], libraries, 2],
  ] as const) {
    const { mb, code } = await peakMemoryOf([cliPath, ...args]);
    t.is(code, exitCode, args[0]);
    t.log(args[0], (mb - bare).toFixed(1));
    t.true(mb < bare + most, `${args[0]}: ${mb} MB, and Node.js ${bare} MB`);
  }
});

test("a wrong option is code 2, with one line that says what to do", async (t) => {
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

test("a process ends with the exit code of its command, and says what it says", async (t) => {
  const { rpcUrl } = await startMember(t);
  const alive = await runCliProcess(["health"], { env: { GATEHOUSE_NODE: rpcUrl } });
  t.is(alive.code, 0, alive.stderr);
  t.regex(alive.stdout, /^ok /);
  // Nor does V8, of flags that it does not know.
  t.is(alive.stderr, "");
  const wrong = await runCliProcess(["start", "--rpc-port", "x"]);
  t.is(wrong.code, 2);
  t.regex(wrong.stderr, /^gatehouse: /);
});

test("a reader that has seen enough is no failure", async (t) => {
  const child = spawn(process.execPath, [cliPath, "--help"], {
    env: cleanEnvironment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.destroy();
  t.deepEqual(await once(child, "close"), [0, null]);
});

test("keygen makes a key once, for its owner only, and prints the public key alone", async (t) => {
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

test("health and peers show a running node, for people and for machines", async (t) => {
  const { rpcUrl, mainLoop } = await startMember(t);
  const people = await runCli(["health", "--node", rpcUrl]);
  t.is(people.code, 0);
  t.regex(people.stdout, new RegExp(`^ok {3}${versionPattern} "Barbican", up `));
  t.regex(people.stdout, /main_loop +ready/);
  t.notRegex(people.stdout, /\u001b/);
  const machines = await runCli(["health", "--node", rpcUrl, "--json"]);
  t.is(healthShape.parse(JSON.parse(machines.stdout)).status, "ok");
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

test("a node that is not there is code 3", async (t) => {
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

test("devnet: two nodes find each other, and stop cleanly", async (t) => {
  const { child, port, ended, stdout, stderr } = await startCli(t, ["devnet", "--rpc-port", "54550"]);
  while (!stdout().includes("network-ready")) {
    await new Promise((resolve) => child.stdout?.once("data", resolve));
  }
  const askPeers = async () =>
    JSON.parse((await ask(port, "/peerlist")).text) as {
      status: { ready: boolean };
      sync: { block: number };
      identity: string;
    }[];
  // The block of the samples has reached the other node, and the first one has heard of it.
  await until(async () => (await askPeers()).every(({ status, sync }) => status.ready && sync.block >= 1));
  const peers = await askPeers();
  t.is(peers.length, 1);
  t.like(peers[0], { status: { online: true } });
  t.regex(peers[0]!.identity, /^0x[0-9a-f]{64}$/);
  t.is((JSON.parse((await ask(port, "/health")).text) as { status: string }).status, "ok");
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stderr(), "");
});
