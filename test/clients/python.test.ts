/** The Python client of the examples against a real node, with stubs generated as its README says. */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { version } from "../../src/base/version.js";
import { startMember, startTestNode, startTlsNode } from "../helpers/nodes/start-node.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { type ForeignProgram, startProgram, testExamples } from "../helpers/nodes/foreign.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { testNetwork } from "../helpers/chain/transactions.js";
import { temporaryDirectory, type Teardown } from "../helpers/nodes/teardown.js";
import { isInstalled, succeeds, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";

// The first python3 in the path may lack the packages of Debian.
const pythons = [process.env["PYTHON"], "python3", "/usr/bin/python3"].filter((name) => name !== undefined);
const python = pythons.find((name) => succeeds(name, "-c", "import grpc, google.protobuf"));
const missing = whyNotInstalled({
  "python3-grpcio and python3-protobuf": python !== undefined,
  "protobuf-compiler": isInstalled("protoc"),
  "protobuf-compiler-grpc": isInstalled("grpc_python_plugin"),
});
const testPython = testUnless(missing);
const isSigning = python !== undefined && succeeds(python, "-c", "import cryptography");
const testSigning = testUnless(missing ?? whyNotInstalled({ "python3-cryptography": isSigning }));
const testWithoutSigning = testUnless(missing ?? (isSigning ? "python3-cryptography is installed" : undefined));

let stubs = "";

testPython.before(async () => {
  stubs = await mkdtemp(join(tmpdir(), "gatehouse-stubs-"));
  execFileSync(resolve("examples/python/generate.sh"), [stubs], { stdio: ["ignore", "ignore", "inherit"] });
});

testPython.after(() => rm(stubs, { recursive: true, force: true }));

const run = (t: Teardown, ...args: readonly string[]): ForeignProgram =>
  startProgram(t, python!, [resolve("examples/python/client.py"), "--stubs", stubs, ...args]);

const codes = { unavailable: "UNAVAILABLE", resourceExhausted: "RESOURCE_EXHAUSTED" };
testExamples(testPython, "Python", ["client"], (t, _, ...args) => run(t, ...args), codes);

/** A Python program that sends 100 concurrent calls on one channel, and counts the responses by code. */
const parallelCalls = `
import collections, grpc, sys
target, *ca = sys.argv[1:]
channel = (
    grpc.secure_channel(target, grpc.ssl_channel_credentials(open(ca[0], "rb").read())) if ca
    else grpc.insecure_channel(target)
)
call = channel.unary_unary("/gatehouse.info.v1.InfoService/GetVersion")
futures = [call.future(b"", timeout=60) for _ in range(100)]
print(collections.Counter(f"{f.code().name} {f.result().decode().strip()}" for f in futures))
`;

testPython("grpc-python gets the status of 100 concurrent calls, in cleartext and over TLS", async (t) => {
  const [plain, secure] = [await startTestNode(t), await startTlsNode(t)];
  for (const args of [[`127.0.0.1:${plain.port}`], [`localhost:${secure.port}`, secure.cert]]) {
    const { code, stdout, stderr } = await startProgram(t, python!, ["-c", parallelCalls, ...args]).ended;
    t.is(code, 0, stderr);
    t.is(stdout, `Counter({'OK \\x05${version}': 100})\n`);
  }
});

testPython("the Python client prints the reason of an error", async (t) => {
  const { port } = await startMember(t);
  for (const [address, code, reason] of [
    [`stor-${"0".repeat(40)}`, "NOT_FOUND", "NOT_FOUND"],
    ["stor-1", "INVALID_ARGUMENT", "INVALID_REQUEST"],
  ] as const) {
    const result = await run(t, `127.0.0.1:${port}`, "--address", address).ended;
    t.is(result.code, 1);
    t.regex(result.stdout, /^program {3}failed: [A-Za-z]/m);
    t.true(result.stdout.endsWith(`\n  code    ${code}\n  reason  ${reason} (domain gatehouse)\n`), result.stdout);
  }
});

testSigning("the Python client reads a private program only with the key of its owner", async (t) => {
  const node = await startMember(t);
  const keys = await temporaryDirectory(t);
  const [alice, bob] = [join(keys, "alice.key"), join(keys, "bob.key")];
  await writeKey(alice, testKey(2));
  await writeKey(bob, testKey(3));
  const create = ["storage", "create", "diary", "--access", "owner", "--data", '{"n": 1.0}', "--key", alice];
  const created = await runCli(create, { env: { GATEHOUSE_NODE: node.rpcUrl } });
  t.is(created.code, 0, created.stderr);
  const [address = ""] = created.stdout.split("\n");

  const read = (...args: string[]) => run(t, `127.0.0.1:${node.port}`, "--address", address, ...args).ended;
  const ownRead = await read("--key", alice);
  t.is(ownRead.code, 0, ownRead.stdout + ownRead.stderr);
  t.true(ownRead.stdout.includes(`\nprogram   diary, of ${testKey(2).publicKey}\n  access  owner\n`), ownRead.stdout);
  t.true(ownRead.stdout.includes('\n  data    {"n": 1.0}\n'), ownRead.stdout);
  t.true(ownRead.stdout.endsWith(`\n          ${address} diary, 10 bytes\n`), ownRead.stdout);
  for (const stranger of [await read(), await read("--key", bob)]) {
    t.is(stranger.code, 1);
    t.regex(stranger.stdout, /\n {2}reason {2}NOT_FOUND \(domain gatehouse\)\n/);
    t.notRegex(stranger.stdout, /diary/);
  }
});

// The other programs find the stubs on the module path, as the README says.
testExamples(testSigning, "Python", ["write", "watch", "vectors"], (t, name, ...args) =>
  startProgram(t, "env", [`PYTHONPATH=${stubs}`, python!, resolve("examples/python", `${name}.py`), ...args]),
);

// The verifier needs only the Python standard library and cryptography, no stubs.
const verifyingPython = pythons.find((name) => succeeds(name, "-c", "import cryptography"));
const testVerifying = testUnless(whyNotInstalled({ "python3-cryptography": verifyingPython !== undefined }));
const runVerifying = (t: Teardown, name: string, ...args: readonly string[]): ForeignProgram =>
  startProgram(t, verifyingPython!, [resolve("examples/python", name), ...args]);

testVerifying("the verifier in Python reproduces the proof vectors, and detects changed ones", async (t) => {
  const right = await runVerifying(t, "verify_vectors.py", "examples/vectors").ended;
  t.regex(right.stdout, /^\d\d+ checks passed\n$/, right.stderr);
  const copy = await temporaryDirectory(t);
  const content = JSON.parse(await readFile("examples/vectors/proofs.json", "utf8")) as {
    readonly refused: readonly { readonly name: string; flaw: string }[];
  };
  content.refused.find(({ name }) => name === "an old head")!.flaw = "path";
  await writeFile(join(copy, "proofs.json"), JSON.stringify(content));
  const wrong = await runVerifying(t, "verify_vectors.py", copy).ended;
  t.is(wrong.code, 1);
  t.regex(wrong.stderr, /^an old head:\n {2}age\nand should be\n {2}path\n/);
});

testVerifying("the verifier in Python reads proven data from a node, and rejects another network", async (t) => {
  const node = await startMember(t);
  const dir = await temporaryDirectory(t);
  await writeKey(join(dir, "alice.key"), testKey(2));
  const data = ' { "n": 1.0, "caf\\u00e9 \\ud83c\\udff0": [1, 2] }';
  const create = ["storage", "create", "notes", "--access", "public", "--data", data, "--key", join(dir, "alice.key")];
  const created = await runCli(create, { env: { GATEHOUSE_NODE: node.rpcUrl } });
  t.is(created.code, 0, created.stderr);
  const [address = ""] = created.stdout.split("\n");
  const read = (network: string, ...args: string[]) =>
    runVerifying(t, "verify.py", node.rpcUrl, network, ...args).ended;
  const document = await read(testNetwork, address);
  t.is(document.stdout, `${data}\n`, document.stderr);
  t.regex(document.stderr, /^proven by the header of block \d+, 0x[0-9a-f]{64}\n$/);
  t.is((await read(testNetwork, address, "n")).stdout, "1.0\n");
  t.is((await read(testNetwork, address, "caf\u00e9 \u{1f3f0}")).stdout, "[1, 2]\n");
  t.is((await read(testNetwork, address, "m")).stderr, "Proven: there is no such field.\n");
  const absent = await read(testNetwork, `stor-${"0".repeat(40)}`);
  t.is(absent.stderr, "Proven: there is no storage program at this address.\n");
  const other = await read(`0x${"1".repeat(64)}`, address);
  t.deepEqual([other.code, other.stdout], [1, ""]);
  t.regex(other.stderr, /^Not proven \(network\): /);
});

testWithoutSigning("the Python client names the package that it needs to sign", async (t) => {
  const { code, stderr } = await run(t, "127.0.0.1:9", "--key", "none").ended;
  t.is(code, 1);
  t.regex(stderr, /needs the package cryptography/);
});
