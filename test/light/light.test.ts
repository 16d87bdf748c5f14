/** A light node with honest and dishonest upstream nodes. */
import { addCommitment, createGatehouse, createProgram, keyFromSeed, spendNullifier } from "gatehouse-client";
import test from "ava";
import { readFile, readdir, rm, writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createLogging } from "../../src/base/logging/log.js";
import { type LightNode, startLight } from "../../src/light/light-node.js";
import { testKey } from "../helpers/chain/keys.js";
import { forged, kindsOfLies, startLyingNode } from "../helpers/nodes/lying-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { runCli, startCli } from "../helpers/nodes/run-cli.js";
import { startTestLight } from "../helpers/nodes/start-light.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testNetwork } from "../helpers/chain/transactions.js";

const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
const missing = `stor-${"0".repeat(40)}`;

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
  const create = async (name: string, access: "public" | "owner", data: Record<string, string | number[]>) =>
    (await alice.submit(createProgram({ name, access, data }))).storageAddress;
  notes = await create("notes", "public", { title: "Hello", other: "x", tags: [1, 2] });
  // The rest is in later blocks, so that a dishonest node can serve an older one.
  await alice.waitFor((await alice.submit(addCommitment(41n))).hash);
  other = await create("other", "public", { title: "Other" });
  secret = await create("secret", "owner", { title: "Hidden" });
  await alice.submit(addCommitment(42n));
  const spent = await alice.submit(spendNullifier({ nullifierHash: element(7) }));
  transaction = spent.hash;
  await alice.waitFor(spent.hash);
  head = (await alice.chain.getHead({})).number;
});

/** The status and the body of a response. */
async function responseOf({ port }: Pick<LightNode, "port">, path: string): Promise<string> {
  const { status, text } = await ask(port, path);
  return `${status} ${text}`;
}

test("verified responses equal those of the node, for existing and for missing data", async (t) => {
  const { light, lines } = await startTestLight(t, [node.rpcUrl]);
  const paths = [notes, other, missing, "stor-1"].flatMap((address) =>
    ["", "/all", "/fields", "/field/title", "/field/tags", "/field/no", "/has/title", "/has/no", "/type/tags"].map(
      (rest) => `/storage-program/${address}${rest}`,
    ),
  );
  paths.push(
    ...[1, 7].map((item) => `/storage-program/${notes}/field/tags/item/${item}`),
    ...[element(7), element(8), "7"].map((nullifier) => `/zk/nullifier/${nullifier}`),
    ...["/zk/merkle-root", `/zk/merkle/proof/${element(42)}`, "/chain/blocks/1", "/genesis"],
    ...[`/chain/transactions/${transaction}`, `/chain/senders/${testKey(1).publicKey}`],
  );
  const statuses = new Set<string>();
  for (const path of paths.map(encodeURI)) {
    const verified = await responseOf(light, path);
    const original = await responseOf(node, path);
    // A node only says that the caller finds nothing; a light node proves that nothing exists.
    t.is(verified, original.replace(/at this address that .*?"/, 'at this address."'), path);
    t.notRegex(verified, /nothing at this path/, path);
    statuses.add(verified.slice(0, 3));
  }
  t.regex(await responseOf(light, "/moon"), /^404 .*nothing at this path/);
  t.like(await ask(light.port, "/zk/merkle-root", { method: "POST" }), { status: 405 });
  t.deepEqual([...statuses].sort(), ["200", "400", "404"]);
  t.deepEqual(lines, []);
});

test("responds as of a block that the client has seen elsewhere, or with 503", async (t) => {
  const own = await startMember(t);
  const { light, lines } = await startTestLight(t, [own.rpcUrl]);
  const before = light.block();
  const client = createGatehouse(own.rpcUrl, { signer: keyFromSeed(new Uint8Array(32).fill(1)) });
  t.teardown(() => client.close());
  await client.waitFor((await client.submit(addCommitment(43n))).hash);
  const { number } = await client.chain.getHead({});
  t.is(light.block(), before, "the light node reads nothing by itself");
  const get = (block: bigint | string) =>
    ask(light.port, "/zk/merkle-root", { headers: { "Gatehouse-Min-Block": String(block) } });
  const current = await get(number);
  t.like(current, { status: 200, text: (await ask(own.port, "/zk/merkle-root")).text }, lines.join("\n"));
  t.true(light.block()! >= number);
  const ahead = await get(number + 1_000n);
  t.is(ahead.status, 503);
  t.regex(ahead.text, /The latest proved block is \d+; try again in 5 s\./);
  t.is((await get("soon")).status, 400);
  t.notRegex(
    lines.join("\n"),
    /false proof/,
    "until its authority signs that block 0 is the latest, a node is no liar",
  );
});

test("responds with 501 to requests without a proof, and with 403 for private data", async (t) => {
  const { light } = await startTestLight(t, [node.rpcUrl]);
  const unproved = /^501 .*(cannot be prove[dn]|without a proof).*"errorCode":"NOT_IMPLEMENTED"/;
  for (const path of [
    ...["/storage-program/search?q=notes", `/storage-program/owner/${testKey(1).publicKey}`, "/health", "/version"],
    ...["/chain/pending", `/state/proof?storageAddress=${notes}`, `/zk/merkle/proof/${element(43)}`],
    `/chain/transactions/${element(5)}`,
  ]) {
    t.regex(await responseOf(light, path), unproved, path);
  }
  t.regex(await responseOf(light, `/zk/merkle/proof/${element(43)}`), /^501 .*A node responded without a proof/);
  t.regex(await responseOf(light, `/storage-program/${secret}/all`), /^403 .*PERMISSION_DENIED/);
});

test("detects every kind of false response, drops the node, and queries the next one", async (t) => {
  const dishonest = await startLyingNode(t, node.port);
  const path = `/storage-program/${notes}/field/title`;
  const expected = await responseOf(node, path);
  for (const { name, lie, found } of kindsOfLies(other)) {
    dishonest.lie();
    const { light, lines } = await startTestLight(t, [dishonest.url, node.rpcUrl]);
    t.is(light.block(), head);
    dishonest.lie(lie);
    t.is(await responseOf(light, path), expected, name);
    t.is(lines.length, 1, name);
    t.true(lines[0]!.startsWith(dishonest.url), name);
    t.regex(lines[0]!, found, name);
    const { asked } = dishonest;
    t.is(await responseOf(light, path), expected, name);
    t.is(dishonest.asked, asked, `${name}: not queried again`);

    // Without another node, the light node responds with 503.
    const alone = await startTestLight(t, [dishonest.url]);
    t.regex(await responseOf(alone.light, path), /^503 .*None of this light node's upstream nodes/, name);
  }
});

test("rejects an older state after a restart, and a directory of another network", async (t) => {
  const dishonest = await startLyingNode(t, node.port);
  const { light, dir, lines: noLines } = await startTestLight(t, [dishonest.url]);
  t.deepEqual(noLines, []);
  await light.stop();
  const later = head - 1n;
  dishonest.lie((_, asked) => forged(asked, { number: later }));
  const again = await startTestLight(t, [dishonest.url], dir);
  t.regex(await responseOf(again.light, `/storage-program/${notes}/all`), /^503 /);
  t.regex(again.lines[0]!, new RegExp(`state of block ${later}, but this client has seen block ${head}`));
  await again.light.stop();

  const { log } = createLogging({ level: "silent", json: true });
  const common = { urls: [dishonest.url], dir, port: 0, maxAgeS: undefined, log };
  await t.throwsAsync(startLight({ ...common, genesisHash: element(1) }), { message: /belongs to the network 0x/ });
  const stored = await readFile(join(dir, "head.json"), "utf8");
  for (const content of [
    "{",
    stored.replace('"header":"', '"header":" '),
    stored.replace('"number":"', '"number":"0'),
  ]) {
    await writeFile(join(dir, "head.json"), content);
    await t.throwsAsync(
      startLight({ ...common, genesisHash: testNetwork }),
      { message: /head\.json is corrupt/ },
      content,
    );
  }
  // Like a disk error, this is an error of the read, and says nothing about the content.
  await rm(join(dir, "head.json"));
  await mkdir(join(dir, "head.json"));
  await t.throwsAsync(startLight({ ...common, genesisHash: testNetwork }), {
    message: /head\.json cannot be read \(EISDIR\)/,
  });
});

test("stores two headers with one number, and responds with 503 until the operator removes the file", async (t) => {
  const dishonest = await startLyingNode(t, node.port);
  const { light, dir } = await startTestLight(t, [node.rpcUrl, dishonest.url]);
  dishonest.lie((_, asked) => forged(asked, { number: head }));
  const path = `/storage-program/${notes}/field/title`;
  t.regex(await responseOf(light, path), /^200 /);
  await light.stop();
  const { light: stopped, lines } = await startTestLight(t, [dishonest.url, node.rpcUrl], dir);
  const stopReason = /^503 .*signed two blocks with the same number.*fork-\d+-[0-9a-f]{8}\.json/;
  for (const route of [path, "/zk/merkle-root"]) {
    t.regex(await responseOf(stopped, route), stopReason);
  }
  t.regex(lines.join("\n"), /There are two blocks \d+, both signed: .* All requests fail until/);
  const [name] = (await readdir(dir)).filter((file) => file.startsWith("fork-"));
  const evidence = JSON.parse(await readFile(join(dir, name!), "utf8")) as { headers: { header: string }[] };
  t.is(new Set(evidence.headers.map(({ header }) => header)).size, 2);

  // The file still counts after a restart.
  await stopped.stop();
  dishonest.lie();
  const { light: restarted } = await startTestLight(t, [node.rpcUrl], dir);
  t.regex(await responseOf(restarted, path), /^503 /);
  await rm(join(dir, name!));
  t.regex(await responseOf(restarted, path), /^200 /);
});

test("stores a fork that a light node finds at its start, or while it waits for a block", async (t) => {
  const dishonest = await startLyingNode(t, node.port);
  for (const liesFirst of [true, false]) {
    dishonest.lie();
    const { light, dir } = await startTestLight(t, [dishonest.url]);
    t.is(light.block(), head);
    const fork = (): void => dishonest.lie((_, asked) => forged(asked, { number: head }));
    let waiting = light;
    if (liesFirst) {
      await light.stop();
      fork();
      ({ light: waiting } = await startTestLight(t, [dishonest.url], dir));
    } else {
      fork();
      const headers = { "Gatehouse-Min-Block": String(head + 1n) };
      t.like(await ask(waiting.port, "/zk/merkle-root", { headers }), { status: 503 });
    }
    t.is((await readdir(dir)).filter((file) => file.startsWith("fork-")).length, 1, `lies first: ${liesFirst}`);
  }
});

test("a 403 of one node does not hide false proofs and fork evidence of the next one", async (t) => {
  const dishonest = await startLyingNode(t, node.port);
  const { light, lines } = await startTestLight(t, [node.rpcUrl, dishonest.url]);
  const path = `/storage-program/${secret}/all`;
  dishonest.lie((_, asked) => forged(asked, {}, testKey(5)));
  t.regex(await responseOf(light, path), /^403 .*PERMISSION_DENIED/);
  t.is(lines.length, 1);
  t.true(lines[0]!.startsWith(`${dishonest.url} sent a false proof and is not queried for now: `), lines[0]);

  const fork = await startTestLight(t, [node.rpcUrl, dishonest.url]);
  dishonest.lie((_, asked) => forged(asked, { number: head }));
  t.regex(await responseOf(fork.light, path), /^503 .*signed two blocks with the same number/);
});

test("the command prints a ready line, stops on Ctrl-C, and reports invalid arguments", async (t) => {
  const dir = await temporaryDirectory(t);
  const args = ["light", node.rpcUrl, "--genesis-hash", testNetwork, "--port", "0", "--data-dir", join(dir, "light")];
  const { child, ready, port, ended, stderr } = await startCli(t, args);
  t.deepEqual(Object.keys(ready), ["event", "role", "rpc", "ports", "block"]);
  t.like(ready, { event: "ready", role: "light", rpc: `http://127.0.0.1:${port}`, block: Number(head) });
  const path = `/storage-program/${notes}/all`;
  t.is(await responseOf({ port }, path), await responseOf(node, path));
  const portTaken = await runCli([...args.slice(0, 5), String(port), "--data-dir", join(dir, "second")]);
  t.like(portTaken, { code: 1, stderr: `gatehouse: Port ${port} is taken; choose another --port.\n` });
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stderr(), "");
  for (const [args, message] of [
    [["light", node.rpcUrl], /Required option '--genesis-hash <HASH>' not specified/],
    [["light", "--trust", testNetwork], /[Mm]issing required argument/],
    [["light", "nonsense", "--trust", testNetwork], /A node must be a URL such as/],
    [["light", node.rpcUrl, "--trust", "0x1"], /--genesis-hash must be the hash/],
  ] as const) {
    const { code, stderr: output } = await runCli(args);
    t.is(code, 2);
    t.regex(output, message);
  }
});
