/** What happens on a chain, as those who watch a real node are told. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test, { type ExecutionContext } from "ava";
import { EventSource } from "eventsource";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { callerOf } from "../helpers/process/caller.js";
import { blockDone, type EventJson, isEvent, listen, type Listener } from "../helpers/wire/events.js";
import { testKey, type TestKey } from "../helpers/chain/keys.js";
import { ask } from "../helpers/wire/plain-client.js";
import { authorityDirectory, startMember } from "../helpers/nodes/start-member.js";
import { startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { commit, createPublic, type Operation, signTransaction, signZk, spend } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const [authority, alice, bob, carol] = [testKey(1), testKey(2), testKey(3), testKey(4)];
const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

interface Chain {
  readonly node: TestNode;
  /** Hands a transaction in, and waits for its block; gives hash and number. */
  readonly apply: (transaction: Transaction) => Promise<{ readonly hash: string; readonly number: number }>;
  /** A change of a program by alice. */
  write(operation: Operation): Promise<{ readonly hash: string; readonly number: number }>;
  submit(transaction: Transaction): Promise<string>;
  listen(query?: string, headers?: Readonly<Record<string, string>>): Promise<Listener>;
}

function chainOf(t: ExecutionContext, node: TestNode): Chain {
  const rpc = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  let nonce = 0;
  const submit: Chain["submit"] = async (transaction) => (await rpc.submitTransaction({ transaction })).hash;
  const apply: Chain["apply"] = async (transaction) => {
    const hash = await submit(transaction);
    let number: bigint | undefined;
    await until(async () => {
      ({ blockNumber: number } = await rpc.getTransaction({ hash }));
      return number !== undefined;
    }, `${hash} is in a block`);
    return { hash, number: Number(number) };
  };
  return {
    ...{ node, submit, apply },
    write: (operation) => apply(signTransaction(alice, ++nonce, operation)),
    async listen(query, headers) {
      const listener = await listen(node.port, query, headers);
      t.teardown(() => listener.end());
      return listener;
    },
  };
}

const start = async (t: ExecutionContext, flags = {}): Promise<Chain> => chainOf(t, await startMember(t, flags));

const createPrivate = (programName: string, allowed: readonly string[] = []): Operation => ({
  case: "createProgram",
  value: {
    programName,
    data: { data: { case: "json", value: '{"n":1}' } },
    access: { mode: allowed.length === 0 ? AccessMode.OWNER : AccessMode.RESTRICTED, allowed: [...allowed] },
  },
});
const setField = (storageAddress: string, field: string, value = "1"): Operation => ({
  case: "setField",
  value: { storageAddress, field, value },
});
const as = (key: TestKey) => callerOf(key).headers();
const addressAt = (name: string, nonce: number) => programAddress(alice.publicKey, name, BigInt(nonce), "");
const said = (events: readonly EventJson[]) =>
  events.map(({ cursor, program, transaction, nullifier, commitments, block }) =>
    [
      cursor,
      program && `${program.change} ${program.fields.join()}`.trim(),
      transaction && `${transaction.outcome}${transaction.withheld ? ", withheld" : ""}`,
      nullifier && "nullifier",
      commitments && `${commitments.commitments.length} commitments`,
      block && `block of ${block.transactionCount}`,
    ]
      .filter((part) => part !== undefined)
      .join(" "),
  );

test("each thing that happens is told once, in its order, by its kind, and after any message it goes on", async (t) => {
  const chain = await start(t);
  const early = await chain.listen();
  t.deepEqual((await chain.listen("?fromBlock=1")).status, 200);
  const address = addressAt("a", 1);
  const made = await chain.write(createPublic("a", '{"n":1}'));
  await chain.write(setField(address, "n", "2"));
  await chain.write({
    case: "writeProgram",
    value: { storageAddress: address, data: { data: { case: "json", value: "[]" } } },
  });
  await chain.write({ case: "updateAccess", value: { storageAddress: address, access: { mode: AccessMode.PUBLIC } } });
  await chain.apply(signZk(bob, 1, commit(element(5))));
  await chain.apply(signZk(authority, 1, spend(element(7))));
  const { number: last } = await chain.write(createPublic("b", "{}"));
  t.is(last, 7);

  const all = await early.takeTo(last);
  t.deepEqual(said(all), [
    ...["1.0 included", "1.1 created", "1 block of 1"],
    ...["2.0 included", "2.1 fields n", "2 block of 1"],
    ...["3.0 included", "3.1 written", "3 block of 1"],
    ...["4.0 included", "4.1 access", "4 block of 1"],
    ...["5.0 included", "5.1 1 commitments", "5 block of 1"],
    ...["6.0 included", "6.1 nullifier", "6 block of 1"],
    ...["7.0 included", "7.1 created", "7 block of 1"],
  ]);
  t.like(early.heard[0], { cursor: "0", blockNumber: 0, progress: {} });
  t.like(all[0]!.transaction, {
    hash: made.hash,
    index: 0,
    sender: alice.publicKey,
    nonce: 1,
    storageAddress: address,
  });
  t.like(all[1]!.program, { storageAddress: address, transactionHash: made.hash });
  t.like(all[13]!.commitments, { commitments: [element(5)] });
  const { header } = JSON.parse((await ask(chain.node.port, "/chain/blocks/5")).text) as {
    header: { commitmentRoot: string };
  };
  t.is(all[13]!.commitments!.root, header.commitmentRoot);
  t.deepEqual(JSON.parse(JSON.stringify(all[14]!.block!.header)), header);

  for (const [i, { cursor }] of all.slice(0, -1).entries()) {
    for (const [query, headers] of [
      [`?from=${cursor}`, {}],
      ["?from=0&fromBlock=6", { "last-event-id": cursor }],
    ] as const) {
      const later = await chain.listen(query, headers);
      t.deepEqual(await later.takeTo(last), all.slice(i + 1), `after ${cursor}`);
      later.end();
    }
  }
  const third = await chain.listen("?fromBlock=3");
  t.deepEqual(await third.takeTo(last), all.slice(6));
});

test("filters let through what they name, whatever they leave out", async (t) => {
  const chain = await start(t);
  const [a, b] = [addressAt("a", 1), addressAt("b", 2)];
  const { hash } = await chain.write(createPublic("a", "{}"));
  await chain.write(createPublic("b", "{}"));
  await chain.apply(signTransaction(bob, 1, createPublic("c", "{}")));
  await chain.write(setField(b, "x"));
  const { number: last } = await chain.apply(signZk(bob, 2, commit(element(1))));
  const expectations: readonly [query: string, expected: readonly string[]][] = [
    [`addresses=${a}`, ["1.0 included", "1.1 created"]],
    [`addresses=${a}&addresses=${b}&kinds=program`, ["1.1 created", "2.1 created", "4.1 fields x"]],
    [`owners=${bob.publicKey}`, ["3.0 included", "3.1 created"]],
    [`owners=${bob.publicKey.slice(2).toUpperCase()}&kinds=transaction`, ["3.0 included"]],
    [`transactions=${hash}`, ["1.0 included", "1.1 created"]],
    [`transactions=${hash}&owners=${bob.publicKey}&kinds=program`, ["1.1 created", "3.1 created"]],
    [`addresses=${a}&kinds=program&kinds=block`, ["1.1 created", ...[1, 2, 3, 4, 5].map((n) => `${n} block of 1`)]],
    ["kinds=commitments&kinds=nullifier", ["5.1 1 commitments"]],
    [`addresses=stor-${"0".repeat(40)}`, []],
  ];
  for (const [query, expected] of expectations) {
    const listener = await chain.listen(`?fromBlock=1&${query}`);
    t.deepEqual(said(await listener.takeTo(last)), expected, query);
    // What says nothing of its own says where it is, so that who goes on there does not begin at the beginning.
    t.is(blockDone(listener.heard.at(-1)!), last, query);
    listener.end();
  }
});

test("a program is told of to those who may read it now, and of its transactions others hear the hash alone", async (t) => {
  const chain = await start(t);
  const address = addressAt("a", 1);
  const { hash } = await chain.write(createPrivate("a", [bob.publicKey]));
  const { number: second } = await chain.write(setField(address, "secret"));
  const withheld = ["1.0 included, withheld", "1 block of 1", "2.0 included, withheld", "2 block of 1"];
  const whole = ["1.0 included", "1.1 created", "1 block of 1", "2.0 included", "2.1 fields secret", "2 block of 1"];
  const heardBy = async (query: string, headers: Readonly<Record<string, string>>, last: number) => {
    const listener = await chain.listen(`?fromBlock=1${query}`, headers);
    const events = await listener.takeTo(last);
    listener.end();
    return { events, all: JSON.stringify(listener.heard) };
  };
  for (const headers of [{}, as(carol)]) {
    const { events, all } = await heardBy("", headers, second);
    t.deepEqual(said(events), withheld);
    t.deepEqual(events[0], {
      ...{ cursor: "1.0", blockNumber: 1 },
      transaction: { hash, outcome: "included", index: 0, withheld: true },
    });
    for (const secret of [address, "secret", alice.publicKey]) {
      t.false(all.includes(secret), secret);
    }
    for (const query of [`&addresses=${address}`, `&owners=${alice.publicKey}`, "&kinds=program"]) {
      const nothing = await heardBy(query, headers, second);
      t.deepEqual(nothing.events, [], query);
      t.false(nothing.all.includes("."), "no cursor leads into a block");
    }
    t.deepEqual(said((await heardBy(`&transactions=${hash}`, headers, second)).events), withheld.slice(0, 1));
  }
  for (const key of [alice, bob]) {
    t.deepEqual(said((await heardBy("", as(key), second)).events), whole);
    t.deepEqual(said((await heardBy(`&owners=${alice.publicKey}&kinds=program`, as(key), second)).events), [
      "1.1 created",
      "2.1 fields secret",
    ]);
  }

  // The rule counts as it is when somebody hears of it, whenever his stream began.
  const [ofBob, ofCarol] = [await chain.listen("", as(bob)), await chain.listen("", as(carol))];
  const access = { mode: AccessMode.RESTRICTED, allowed: [carol.publicKey] };
  await chain.write({ case: "updateAccess", value: { storageAddress: address, access } });
  const { number: fourth } = await chain.write(setField(address, "later"));
  t.deepEqual(said(await ofBob.takeTo(fourth)), [
    ...["3.0 included, withheld", "3 block of 1"],
    ...["4.0 included, withheld", "4 block of 1"],
  ]);
  t.deepEqual(said(await ofCarol.takeTo(fourth)), [
    ...["3.0 included", "3.1 access", "3 block of 1"],
    ...["4.0 included", "4.1 fields later", "4 block of 1"],
  ]);
  t.deepEqual(said((await heardBy("", as(bob), 2)).events.slice(0, 4)), withheld);

  const { number: fifth } = await chain.write({ case: "deleteProgram", value: { storageAddress: address } });
  t.deepEqual(said((await heardBy(`&addresses=${address}`, as(carol), fifth)).events), []);
  t.true(said((await heardBy(`&addresses=${address}`, as(alice), fifth)).events).includes("5.1 deleted"));
});

test("what is rejected, and what an authority signs anew, is told as it happens", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir, { stateHeadEveryMs: 50 });
  const chain = chainOf(t, node);
  const heads = await chain.listen("?kinds=head");
  const listener = await chain.listen("?kinds=transaction");
  const ofHeads = () => heads.heard.filter(({ head }) => head !== undefined);
  await until(() => ofHeads().length >= 2);
  t.like(ofHeads()[1], { head: { statement: { number: 0, proposer: authority.publicKey } }, cursor: "0" });

  // Two that exclude each other; where the first is in a block already, the second is refused at once.
  for (let i = 1; !listener.heard.some(({ transaction }) => transaction?.outcome === "rejected"); i++) {
    const pair = [2 * i, 2 * i + 1].map((nonce) => signZk(authority, nonce, spend(element(i))));
    const [first, second] = await Promise.allSettled(pair.map((one) => chain.submit(one)));
    t.is(first!.status, "fulfilled");
    await until(() => listener.heard.some(({ transaction }) => transaction?.hash === sha256(pair[0]!.body)));
    if (second!.status === "fulfilled") {
      const { hash } = { hash: sha256(pair[1]!.body) };
      await until(() => listener.heard.some(({ transaction }) => transaction?.hash === hash));
      const told = listener.heard.filter(({ transaction }) => transaction?.hash === hash);
      t.is(told.length, 1);
      t.is(told[0]!.transaction!.outcome, "rejected");
      t.regex(told[0]!.transaction!.reason!, /^The nullifier is spent already/);
      t.is(told[0]!.transaction!.index, undefined);
    }
  }
  const cursors = listener.heard.map(blockDone);
  t.deepEqual(
    cursors,
    [...cursors].sort((a, b) => a - b),
  );
});

test("a block that is yet to come is waited for", async (t) => {
  const chain = await start(t);
  const listener = await chain.listen("?fromBlock=3&kinds=block");
  t.like(listener.heard[0] ?? (await firstOf(listener)), { cursor: "2", progress: {} });
  for (let i = 1; i <= 4; i++) {
    await chain.write(createPublic(`p${i}`, "{}"));
  }
  t.deepEqual(said(await listener.take(2)), ["3 block of 1", "4 block of 1"]);
  // The same, with a cursor of a node that was further.
  const ahead = await chain.listen("?from=5.1&kinds=transaction&kinds=program&kinds=block");
  await chain.write(createPublic("p5", "{}"));
  t.deepEqual(said(await ahead.take(1)), ["5 block of 1"]);
});

async function firstOf(listener: Listener): Promise<EventJson> {
  await until(() => listener.heard.length > 0);
  return listener.heard[0]!;
}

test("what cannot be asked for is refused with a sentence", async (t) => {
  const chain = await start(t);
  const refusals: readonly [query: string, sentence: RegExp][] = [
    ["?from=x", /from must be an unchanged cursor of a message of this stream, not "x"/],
    ["?from=1.2.3", /from must be an unchanged cursor/],
    ["?from=-1", /from must be an unchanged cursor/],
    ["?from=0.1", /from must be an unchanged cursor/],
    ["?from=99999999999999999999", /from must be an unchanged cursor/],
    [`?fromBlock=${2n ** 60n}`, /fromBlock must be a whole number from 0 to 9007199254740991, not/],
    ["?fromBlock=x", /fromBlock must be a whole number/],
    ["?addresses=stor-1", /addresses must be stor- and 40 lower-case hex digits, not "stor-1"/],
    ["?owners=0x1", /owners must be an Ed25519 public key of 64 hex digits/],
    ["?transactions=0x1", /transactions must be 64 hex digits/],
    ["?kinds=unspecified", /kinds must be one of block, .*, not "unspecified"/],
    ["?kinds=everything", /kinds must be one of .*block, transaction/],
    [`?${`owners=${alice.publicKey}&`.repeat(101)}`, /owners must have at most 100 items, not 101/],
  ];
  for (const [query, sentence] of refusals) {
    const { status, text } = await ask(chain.node.port, `/events${query}`);
    const { errorCode, error } = JSON.parse(text) as { errorCode: string; error: string };
    t.deepEqual([status, errorCode], [400, "INVALID_REQUEST"], query);
    t.regex(error, sentence);
  }
  const { status } = await ask(chain.node.port, "/events", { headers: { "last-event-id": "what?" } });
  t.is(status, 400);
});

test("a node without a chain has nothing to tell", async (t) => {
  const node = await startTestNode(t);
  const { status, text } = await ask(node.port, "/events");
  t.is(status, 503);
  t.regex(text, /STATE_NOT_READY/);
});

test("a browser's client hears all over a restart of the node", async (t) => {
  const chain = await start(t);
  const { port, dir } = chain.node;
  const source = new EventSource(`http://127.0.0.1:${port}/events?kinds=block&fromBlock=1`);
  t.teardown(() => source.close());
  const heard: string[] = [];
  source.addEventListener("block", ({ lastEventId }) => heard.push(lastEventId));
  await chain.write(createPublic("a", "{}"));
  await chain.write(createPublic("b", "{}"));
  await until(() => heard.length === 2);
  await chain.node.stop();
  const again = chainOf(
    t,
    await startTestNode(t, { genesis: "genesis.json", "rpc-port": String(port), "loop-interval": "0.1" }, dir),
  );
  await again.apply(signTransaction(carol, 1, createPublic("c", "{}")));
  await until(() => heard.length >= 3);
  t.deepEqual(heard, ["1", "2", "3"]);
});

test("streams of a node that stops end, and it waits for none of them", async (t) => {
  const chain = await start(t);
  const listeners = await Promise.all([chain.listen(), chain.listen("?fromBlock=100"), chain.listen("?kinds=head")]);
  await Promise.all(listeners.map(firstOf));
  await chain.node.stop();
  await until(() => listeners.every(({ isOver }) => isOver));
  t.true(listeners.every(({ heard }) => heard.every((one) => one.errorCode === undefined)));
});

test("a reader of the database tells what another node writes", async (t) => {
  const chain = await start(t);
  const database = `sqlite:${chain.node.databaseFile}`;
  const reader = await startTestNode(t, { database, role: "reader" });
  const listener = await listen(reader.port);
  t.teardown(() => listener.end());
  for (let i = 1; i <= 3; i++) {
    await chain.write(createPublic(`p${i}`, "{}"));
  }
  const own = await chain.listen("?fromBlock=1");
  t.deepEqual(await listener.takeTo(3), await own.takeTo(3));
  t.is(listener.heard.filter(isEvent).length, 9);
});

test("streams are bounded for an address, and leave room for its requests", async (t) => {
  const chain = await start(t, { "streams-per-address": "3", "rate-limit-exempt": "192.0.2.1" });
  const held = await Promise.all([chain.listen(), chain.listen(), chain.listen()]);
  const { status, text } = await ask(chain.node.port, "/events");
  t.is(status, 429);
  t.regex(text, /TOO_MANY_STREAMS/);
  t.is((await ask(chain.node.port, "/version")).status, 200);
  held[0]!.end();
  await until(async () => {
    const next = await chain.listen();
    return next.status === 200;
  });
});
