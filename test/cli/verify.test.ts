/** Verified reads of the command line, and proof files. */
import test from "ava";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProofError } from "../../client/src/proof/proof-error.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { createProvedReader } from "../../src/light/proved-reader.js";
import { createStartRead } from "../../src/light/upstream.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { kindsOfLies, type LyingNode, startLyingNode } from "../helpers/nodes/lying-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { type CliResult, runCli } from "../helpers/nodes/run-cli.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const absent = `stor-${"0".repeat(40)}`;

const file = fileTeardown();
let node: TestNode;
let liar: LyingNode;
let dir: string;
let key: string;
/** Addresses of programs. */
let notes: string;
let other: string;
let secret: string;

async function cli(...args: string[]): Promise<CliResult> {
  return await runCli(args, { env: { GATEHOUSE_NODE: node.rpcUrl } });
}

/** Runs a command that must succeed. Returns its standard output. */
async function output(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args);
  if (code !== 0) {
    throw new Error(stderr);
  }
  return stdout;
}

test.before(async () => {
  node = await startMember(file);
  liar = await startLyingNode(file, node.port);
  dir = await temporaryDirectory(file);
  key = join(dir, "alice.key");
  await writeKey(key, testKey(2));
  const create = async (name: string, access: string, data: string): Promise<string> =>
    (await output("storage", "create", name, "--key", key, "--access", access, "--data", data)).split("\n")[0]!;
  notes = await create("notes", "public", '{"title": "Hello", "n": 1.0, "other": 2}');
  other = await create("other", "public", '{"title": "Other"}');
  secret = await create("secret", "owner", '{"title": "Hidden"}');
  await output("zk", "commit", element(42), "--key", key);
  await output("zk", "nullify", element(7), "--key", join(node.dir, "identity.key"));
});

test("a reader saves its last valid proof, not a later invalid one", async (t) => {
  const faulty = await startLyingNode(t, node.port);
  const reader = createProvedReader(createStartRead(faulty.url)(), { genesisHash: testNetwork });
  const read = (storageAddress: string) => reader.read(StorageService.method.getProgramData, { storageAddress });
  t.is(await reader.proofFile(), undefined);
  await read(notes);
  const proof = await reader.proofFile();
  t.true(proof!.includes(notes));
  faulty.lie((answer) => {
    answer.program!.state = { case: undefined };
    return answer;
  });
  await t.throwsAsync(read(other), { instanceOf: ProofError });
  t.is(await reader.proofFile(), proof);
});

test("a verified read prints the same as an unverified one, and the block on stderr", async (t) => {
  const reads = [
    ["storage", "get", notes],
    ["storage", "get", notes, "n"],
    ["zk", "root"],
    ["zk", "nullifier", element(7)],
    ["zk", "nullifier", element(8)],
    ["zk", "proof", element(42)],
    ["storage", "get", secret, "title", "--key", key],
  ];
  for (const read of reads) {
    for (const json of [[], ["--json"]]) {
      const unverified = await cli(...read, ...json);
      const verified = await cli(...read, ...json, "--verify", testNetwork.toUpperCase().replace("X", "x"));
      const name = [...read, ...json].join(" ");
      t.is(verified.code, 0, `${name}: ${verified.stderr}`);
      t.is(verified.stdout, unverified.stdout, name);
      t.regex(verified.stderr, json.length > 0 ? /^$/ : /^proved by block \d+, the latest as of \S+ \S+ ago\n$/, name);
    }
  }
  t.is(await output("zk", "nullifier", element(8)), "unspent\n");
  t.regex(await output("zk", "nullifier", element(7)), /^spent in block \d+ by 0x[0-9a-f]{64}\n$/);
});

test("an absence is proved, and a rejection is reported as unproved", async (t) => {
  const verify = ["--verify", testNetwork];
  t.like(await cli("storage", "get", absent, ...verify), {
    code: 1,
    stderr: "gatehouse: Proved: There is no storage program at this address. (NOT_FOUND)\n",
  });
  const { code, stderr } = await cli("storage", "get", notes, "subtitle", ...verify, "--json");
  t.is(code, 1);
  t.like(JSON.parse(stderr), { errorCode: "FIELD_NOT_FOUND", exitCode: 1 });
  t.regex(
    (await cli("storage", "get", secret, ...verify)).stderr,
    /^gatehouse: The node rejected the request: .*PERMISSION_DENIED/,
  );
});

test.serial("rejects every kind of false response", async (t) => {
  const get = ["storage", "get", notes, "title", "--verify", testNetwork, "--node", liar.url];
  t.like(await cli(...get), { code: 0, stdout: '"Hello"\n' });
  for (const { name, lie, found } of kindsOfLies(other)) {
    liar.lie(lie);
    const { code, stdout, stderr } = await cli(...get);
    t.is(code, 1, name);
    t.is(stdout, "", name);
    t.regex(stderr, /^gatehouse: Not proved: /, name);
    t.regex(stderr, found, name);
    t.regex((await cli(...get, "--json")).stderr, /"errorCode":"UNPROVED"/, name);
  }
  liar.lie();
  // A proof of another network.
  const otherNetwork = await cli("storage", "get", notes, "--verify", element(1));
  t.is(otherNetwork.code, 1);
  t.regex(otherNetwork.stderr, /of the network 0x[0-9a-f]{64}, not of 0x0+1\. Compare the hash/);
});

test.serial("--max-age sets the maximum age of a signed head", async (t) => {
  t.teardown(() => liar.lie());
  const { lie } = kindsOfLies(other).find(({ name }) => name === "an old head")!;
  liar.lie(lie);
  const get = ["storage", "get", notes, "title", "--verify", testNetwork, "--node", liar.url];
  const stale = await cli(...get, "--max-age", "3000");
  t.regex(stale.stderr, /the maximum age is 3000 s\. If this machine's clock is right, /);
  // The old head is accepted, and proves the state at its time.
  t.regex((await cli(...get, "--max-age", "4000")).stderr, /^gatehouse: Proved: There is no storage program/);
});

test("verify checks a saved proof without a node, and prints the proved facts", async (t) => {
  const saved = join(dir, "proof.json");
  const check = async (...args: string[]): Promise<CliResult> =>
    await runCli(["verify", saved, "--genesis", testNetwork, ...args], {
      env: { GATEHOUSE_NODE: "http://127.0.0.1:1" },
    });
  const cases: readonly (readonly [read: readonly string[], code: number, facts: RegExp])[] = [
    [
      ["storage", "get", notes, "n"],
      0,
      new RegExp(`The program ${notes} is "notes" of 0x.*\nIts field "n" is: 1.0\n$`),
    ],
    [["storage", "get", notes, "m"], 1, /It has no field "m"\.\n$/],
    [["storage", "get", notes], 0, /It holds: \{"title": "Hello", "n": 1.0, "other": 2\}\n$/],
    [["storage", "get", absent], 1, new RegExp(`There has never been a program at ${absent}`)],
    [["zk", "nullifier", element(7)], 0, /was spent in block \d+ by 0x/],
    [["zk", "nullifier", element(8)], 0, /is not spent\.\n$/],
    [["zk", "root"], 0, /The root of the commitment tree is 0x[0-9a-f]{64}, of 1 leaves\.\n$/],
  ];
  for (const [read, code, facts] of cases) {
    const name = read.join(" ");
    t.is((await cli(...read, "--verify", testNetwork, "--save", saved)).code, code, name);
    t.is((await stat(saved)).mode & 0o777, 0o600);
    const checked = await check();
    t.is(checked.code, 0, `${name}: ${checked.stderr}`);
    t.regex(
      checked.stdout,
      /^valid: as of block \d+ of \d{4}-\S+Z(, still the latest at \S+Z)?,\nsigned by 0x[0-9a-f]{64}\n/,
    );
    t.regex(checked.stdout, facts, name);
    t.like(JSON.parse((await check("--json")).stdout), { valid: true, genesisHash: testNetwork });
  }
  t.like(await runCli(["verify", saved, "--genesis", join(node.dir, "genesis.json")]), { code: 0 });
});

test("verify rejects a changed proof, and accepts a response of GET /state/proof as a proof", async (t) => {
  const saved = join(dir, "changed.json");
  await cli("storage", "get", notes, "n", "--verify", testNetwork, "--save", saved);
  const text = await readFile(saved, "utf8");
  const { genesis } = JSON.parse(text) as { genesis: string };
  for (const [name, changed, code, message] of [
    ["the value", text.replace('"value":"1.0"', '"value":"2.0"'), 1, /is invalid: .* does not lead/],
    ["the request", text.replace('"fields":["n"]', '"fields":["m"]'), 1, /does not prove the field "m"/],
    ["the genesis", text.replace(JSON.stringify(genesis), '"{}"'), 1, /of the network 0x.*, not of/],
    ["an empty object", "{}", 1, /not a proof in the JSON form/],
    ["no JSON", "}", 1, /is not JSON/],
  ] as const) {
    t.not(changed, text, name);
    await writeFile(saved, changed);
    const checked = await cli("verify", saved, "--genesis", testNetwork);
    t.is(checked.code, code, name);
    t.regex(checked.stderr, message, name);
  }
  await writeFile(saved, (await ask(node.port, `/state/proof?storageAddress=${notes}&fields=n`)).text);
  t.like(await cli("verify", saved, "--genesis", testNetwork), {
    code: 2,
    stderr: "gatehouse: The file has only the node's response; give the genesis file: --genesis genesis.json\n",
  });
  t.regex(await output("verify", saved, "--genesis", join(node.dir, "genesis.json")), /Its field "n" is: 1.0/);
});
