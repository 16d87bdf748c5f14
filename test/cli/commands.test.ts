/** Help, keygen, health and peers. Loaded modules and memory of commands. */
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
import { startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { cleanEnvironment, cliPath, runCli, runCliProcess } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { options } from "../../src/config/options.js";
import { version } from "../../src/base/version.js";

test("the help of start has every option with its variable", async (t) => {
  const { code, stdout } = await runCli(["start", "--help"]);
  t.is(code, 0);
  for (const { name, env } of options) {
    t.true(stdout.includes(`--${name}`) && stdout.includes(env), name);
  }
});

/** Modules that every command may load. */
const common = /^(src\/(main$|cli|base|config)|gen\/)/;
const nowhere = ["--node", "http://127.0.0.1:1"];
const hash = `0x${"0".repeat(64)}`;

test("each command loads only the packages and modules that it needs", async (t) => {
  const { dependencies, peerDependencies } = JSON.parse(await readFile("package.json", "utf8")) as Record<
    "dependencies" | "peerDependencies",
    object
  >;
  const dir = await temporaryDirectory(t);
  const [key, saved] = [join(dir, "alice.key"), join(dir, "proof.json")];
  await writeKey(key, testKey(2));
  await writeFile(saved, "{}");
  const connect = ["@connectrpc/connect", "@connectrpc/connect-node"];
  const proofs = /^src\/(chain\/blocks\/block-rejections|light|rpc\/(codec|parameters|service)|storage|tree)/;
  const none = /^$/;
  const queries = [
    ["--version"],
    ["--help"],
    ["start", "--help"],
    ["keygen", "--data-dir", join(dir, "new")],
    ...[["health"], ["peers"], ["watch"], ["storage", "list", "0x"], ["storage", "history", "stor-"]],
    ...[
      ["tx", "list"],
      ["block", "list"],
      ["search", "guestbook"],
    ],
  ].map((args) => [...args, ...(/^(--|start|keygen)/.test(args[0]!) ? [] : nowhere)]);
  const cases: readonly (readonly [args: readonly string[], packages: readonly string[], modules: RegExp])[] = [
    ...queries.map((args) => [args, [], none] as const),
    [
      ["storage", "create", "notes", "--network", hash, "--key", key, ...nowhere],
      ["@bufbuild/protobuf", "@noble/hashes"],
      /^src\/storage\/documents\/document-bounds$/,
    ],
    [["peers", "book", "--data-dir", dir], ["@bufbuild/protobuf", ...connect], none],
    [
      ["doctor", "--data-dir", dir],
      ["@bufbuild/protobuf", "knex", "lru-cache", "zod"],
      /^src\/(chain|db|node|rpc\/(errors|parameters)|storage\/(programs|stores\/program-list)|tree)/,
    ],
    [
      ["verify-data", "--data-dir", dir],
      ["@bufbuild/protobuf", "@noble/curves", "@noble/hashes", "knex", "lru-cache", "zod"],
      /^src\/(chain|db|node|snapshot\/sync-store|state|storage|tree|zk|rpc\/(errors|parameters))/,
    ],
    [
      ["storage", "get", "stor-", "--verify", hash, ...nowhere],
      ["@bufbuild/protobuf", ...connect, "@noble/ed25519", "@noble/hashes"],
      proofs,
    ],
    [["verify", saved, "--genesis", hash], ["@bufbuild/protobuf", "@noble/ed25519", "@noble/hashes"], proofs],
  ];
  for (const [args, packages, modules] of cases) {
    const loaded = await loadedBy(t, args);
    const name = args.join(" ");
    // Ignore the dependencies of packages. leven is 2 KB.
    t.deepEqual(
      loaded.packages.filter((packageName) => packageName in dependencies || packageName in peerDependencies),
      ["commander", "leven", ...packages].sort(),
      name,
    );
    const isAllowed = (path: string): boolean =>
      modules.test(path) || (common.test(path) && (packages.length > 0 || !path.startsWith("gen/")));
    t.deepEqual(
      loaded.own.filter((path) => !isAllowed(path)),
      [],
      name,
    );
    t.is(loaded.own.includes("gen/google/rpc/error_details_pb"), args.includes("--verify"), name);
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

test("without --node, a command calls the node of this machine at the port in GATEHOUSE_RPC_PORT", async (t) => {
  const { port } = await startMember(t);
  const env = { GATEHOUSE_RPC_PORT: String(port), GATEHOUSE_HOST: "127.0.0.1" };
  t.like(await runCli(["health"], { env }), { code: 0, stderr: "" });
  const overTls = await runCli(["peers"], { env: { ...env, GATEHOUSE_TLS_CERT: "cert.pem" } });
  t.regex(overTls.stderr, new RegExp(`No node responds at https://127.0.0.1:${port}: it answers without TLS`));
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
