/** A light node before nodes that tell the truth, and nodes that lie where they can. */
import { addCommitment, createGatehouse, createProgram, keyFromSeed, spendNullifier } from "gatehouse-client";
import test from "ava";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLogging } from "../../src/base/logging/log.js";
import { type LightNode, startLight } from "../../src/light/light-node.js";
import { testKey } from "../helpers/chain/keys.js";
import { forged, kindsOfLies, startLyingNode } from "../helpers/nodes/lying-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { startCli } from "../helpers/nodes/start-cli.js";
import { startMember } from "../helpers/nodes/start-member.js";
import type { TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const never = `stor-${"0".repeat(40)}`;

const file = fileTeardown();
let node: TestNode;
let notes: string;
let other: string;
let secret: string;
let transaction: string;
let head: bigint;

test.before(async () => {
  node = await startMember(file);
  const alice = createGatehouse(node.rpcUrl, { signer: keyFromSeed(new Uint8Array(32).fill(1)) });
  file.teardown(() => alice.close());
  const make = async (name: string, access: "public" | "owner", data: Record<string, string | number[]>) =>
    (await alice.submit(createProgram({ name, access, data }))).storageAddress;
  notes = await make("notes", "public", { title: "Hello", other: "x", tags: [1, 2] });
  // The rest comes into later blocks, so that there is one to lie of.
  await alice.waitFor((await alice.submit(addCommitment(41n))).hash);
  other = await make("other", "public", { title: "Other" });
  secret = await make("secret", "owner", { title: "Hidden" });
  await alice.submit(addCommitment(42n));
  const spent = await alice.submit(spendNullifier({ nullifierHash: element(7) }));
  transaction = spent.hash;
  await alice.waitFor(spent.hash);
  head = (await alice.chain.getHead({})).number;
});

/** A light node in this process, and the lines of its log. */
async function start(t: Teardown, urls: readonly string[], given?: string) {
  const lines: string[] = [];
  const { log } = createLogging({
    level: "info",
    json: true,
    destination: { write: (line) => lines.push((JSON.parse(line) as { msg: string }).msg) },
  });
  const dir = given ?? (await temporaryDirectory(t));
  const light = await startLight({ urls, genesisHash: testNetwork, dir, port: 0, maxAgeS: 3_600, log });
  t.teardown(() => light.stop());
  return { light, dir, lines };
}

async function answerOf({ port }: Pick<LightNode, "port">, path: string): Promise<string> {
  const { status, text } = await ask(port, path);
  return `${status} ${text}`;
}

test("what is proved is the node's own answer, byte by byte, and so is what is proved not to be there", async (t) => {
  const { light, lines } = await start(t, [node.rpcUrl]);
  const paths = [notes, other, never, "stor-1"].flatMap((address) =>
    ["", "/all", "/fields", "/field/title", "/field/tags", "/field/no", "/has/title", "/has/no", "/type/tags"].map(
      (rest) => `/storage-program/${address}${rest}`,
    ),
  );
  paths.push(
    `/storage-program/${notes}/field/tags/item/1`,
    `/storage-program/${notes}/field/tags/item/7`,
    `/zk/nullifier/${element(7)}`,
    `/zk/nullifier/${element(8)}`,
    "/zk/nullifier/7",
    "/zk/merkle-root",
    `/zk/merkle/proof/${element(42)}`,
    "/chain/blocks/1",
    `/chain/transactions/${transaction}`,
    `/chain/senders/${testKey(1).publicKey}`,
    "/genesis",
  );
  const statuses = new Set<string>();
  for (const path of paths.map(encodeURI)) {
    const answer = await answerOf(light, path);
    const own = await answerOf(node, path);
    // A node cannot say more than that a caller finds nothing; that there is nothing is proved.
    t.is(answer, own.replace(/at this address that .*?"/, 'at this address."'), path);
    t.notRegex(answer, /nothing at this path/, path);
    statuses.add(answer.slice(0, 3));
  }
  t.regex(await answerOf(light, "/moon"), /^404 .*nothing at this path/);
  t.like(await ask(light.port, "/zk/merkle-root", { method: "POST" }), { status: 405 });
  t.deepEqual([...statuses].sort(), ["200", "400", "404"]);
  t.deepEqual(lines, []);
});

test("what cannot be proved is answered with 501, and what not everybody may read with 403", async (t) => {
  const { light } = await start(t, [node.rpcUrl]);
  for (const path of [
    "/storage-program/search?q=notes",
    `/storage-program/owner/${testKey(1).publicKey}`,
    "/health",
    "/version",
    "/chain/pending",
    `/state/proof?storageAddress=${notes}`,
    `/zk/merkle/proof/${element(43)}`,
    `/chain/transactions/${element(5)}`,
  ]) {
    t.regex(
      await answerOf(light, path),
      /^501 .*(cannot be prove[dn]|without a proof).*"errorCode":"NOT_IMPLEMENTED"/,
      path,
    );
  }
  t.regex(await answerOf(light, `/zk/merkle/proof/${element(43)}`), /^501 .*A node responded without a proof/);
  t.regex(await answerOf(light, `/storage-program/${secret}/all`), /^403 .*PERMISSION_DENIED/);
});

test("every kind of lie is caught, who lies is named and left, and the next node is asked", async (t) => {
  const liar = await startLyingNode(t, node.port);
  const path = `/storage-program/${notes}/field/title`;
  const truth = await answerOf(node, path);
  for (const { name, lie, found } of kindsOfLies(other)) {
    liar.lie();
    const { light, lines } = await start(t, [liar.url, node.rpcUrl]);
    t.is(light.block(), head);
    liar.lie(lie);
    t.is(await answerOf(light, path), truth, name);
    t.is(lines.length, 1, name);
    t.true(lines[0]!.startsWith(liar.url), name);
    t.regex(lines[0]!, found, name);
    const { asked } = liar;
    t.is(await answerOf(light, path), truth, name);
    t.is(liar.asked, asked, `${name}: it is asked again`);

    // Alone, it is answered by nobody.
    const alone = await start(t, [liar.url]);
    t.regex(await answerOf(alone.light, path), /^503 .*None of this light node's upstream nodes/, name);
  }
});

test("a restart goes not back in time, and a directory is of one network", async (t) => {
  const liar = await startLyingNode(t, node.port);
  const { light, dir, lines: none } = await start(t, [liar.url]);
  t.deepEqual(none, []);
  await light.stop();
  const later = head - 1n;
  liar.lie((_, asked) => forged(asked, { number: later }));
  const again = await start(t, [liar.url], dir);
  t.regex(await answerOf(again.light, `/storage-program/${notes}/all`), /^503 /);
  t.regex(again.lines[0]!, new RegExp(`state of block ${later}, but this client has seen block ${head}`));
  await again.light.stop();

  const { log } = createLogging({ level: "silent", json: true });
  const common = { urls: [liar.url], dir, port: 0, maxAgeS: undefined, log };
  await t.throwsAsync(startLight({ ...common, genesisHash: element(1) }), { message: /belongs to the network 0x/ });
  await writeFile(join(dir, "head.json"), "{");
  await t.throwsAsync(startLight({ ...common, genesisHash: testNetwork }), { message: /head\.json is corrupt/ });
});

test("two headers of one number are kept, and nothing is answered until the operator has removed them", async (t) => {
  const liar = await startLyingNode(t, node.port);
  const { light, dir } = await start(t, [node.rpcUrl, liar.url]);
  liar.lie((_, asked) => forged(asked, { number: head }));
  const path = `/storage-program/${notes}/field/title`;
  t.regex(await answerOf(light, path), /^200 /);
  await light.stop();
  const { light: told, lines } = await start(t, [liar.url, node.rpcUrl], dir);
  for (const one of [path, "/zk/merkle-root"]) {
    t.regex(await answerOf(told, one), /^503 .*signed two blocks with the same number.*fork-\d+-[0-9a-f]{8}\.json/);
  }
  t.regex(lines.join("\n"), /There are two blocks \d+, both signed: .* All requests fail until/);
  const [name] = (await readdir(dir)).filter((one) => one.startsWith("fork-"));
  const evidence = JSON.parse(await readFile(join(dir, name!), "utf8")) as { headers: { header: string }[] };
  t.is(new Set(evidence.headers.map(({ header }) => header)).size, 2);

  // Also after a restart.
  await told.stop();
  liar.lie();
  const { light: restarted } = await start(t, [node.rpcUrl], dir);
  t.regex(await answerOf(restarted, path), /^503 /);
  await rm(join(dir, name!));
  t.regex(await answerOf(restarted, path), /^200 /);
});

test("a refusal by one node does not hide the lies and the evidence of a fork of the next one", async (t) => {
  const liar = await startLyingNode(t, node.port);
  const { light, lines } = await start(t, [node.rpcUrl, liar.url]);
  const path = `/storage-program/${secret}/all`;
  liar.lie((_, asked) => forged(asked, {}, testKey(5)));
  t.regex(await answerOf(light, path), /^403 .*PERMISSION_DENIED/);
  t.is(lines.length, 1);
  t.true(lines[0]!.startsWith(`${liar.url} sent a false proof and is not queried for now: `), lines[0]);

  const fork = await start(t, [node.rpcUrl, liar.url]);
  liar.lie((_, asked) => forged(asked, { number: head }));
  t.regex(await answerOf(fork.light, path), /^503 .*signed two blocks with the same number/);
});

test("the command: a ready line, the log on stderr, Ctrl-C; and sentences for what is wrong", async (t) => {
  const dir = await temporaryDirectory(t);
  const args = ["light", node.rpcUrl, "--trust", testNetwork, "--port", "0", "--data-dir", join(dir, "light")];
  const { child, ready, port, ended, stderr } = await startCli(t, args);
  t.deepEqual(Object.keys(ready), ["event", "role", "rpc", "ports", "block"]);
  t.like(ready, { event: "ready", role: "light", rpc: `http://127.0.0.1:${port}`, block: Number(head) });
  t.is(
    await answerOf({ port }, `/storage-program/${notes}/all`),
    await answerOf(node, `/storage-program/${notes}/all`),
  );
  const taken = await runCli([...args.slice(0, 5), String(port), "--data-dir", join(dir, "second")]);
  t.like(taken, { code: 1, stderr: `gatehouse: Port ${port} is taken; choose another --port.\n` });
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stderr(), "");
  for (const [wrong, sentence] of [
    [["light", node.rpcUrl], /--trust <GENESIS>/],
    [["light", "--trust", testNetwork], /[Mm]issing required argument/],
    [["light", "nonsense", "--trust", testNetwork], /A node must be a URL such as/],
    [["light", node.rpcUrl, "--trust", "0x1"], /--trust must be the hash/],
  ] as const) {
    t.like(await runCli(wrong), { code: 2 });
    t.regex((await runCli(wrong)).stderr, sentence);
  }
});
