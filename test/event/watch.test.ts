/** Event streams of a real node: order, cursors, filters, access rules, live events and limits. */
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
import {
  fixedPort,
  authorityDirectory,
  startMember,
  startTestNode,
  type TestNode,
} from "../helpers/nodes/start-node.js";
import { commit, createPublic, type Operation, signTransaction, signZk, spend } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";
import { likeLists } from "../helpers/like-lists.js";

const [authority, alice, bob, carol] = [testKey(1), testKey(2), testKey(3), testKey(4)];
const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

interface Chain {
  readonly node: TestNode;
  /** Submits a transaction and waits for its block. Returns the hash of the transaction and the block number. */
  readonly apply: (transaction: Transaction) => Promise<{ readonly hash: string; readonly number: number }>;
  /** Applies an operation of alice, with her next nonce. */
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
const signedBy = (key: TestKey) => callerOf(key).headers();
const addressAt = (name: string, nonce: number) => programAddress(alice.publicKey, name, BigInt(nonce), "");
/** Describes each event in a few words. */
const summarize = (events: readonly EventJson[]) =>
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

test("sends each event once and in order, and resumes after any cursor", async (t) => {
  const chain = await start(t);
  const early = await chain.listen();
  t.deepEqual((await chain.listen("?fromBlock=1")).status, 200);
  const address = addressAt("a", 1);
  const created = await chain.write(createPublic("a", '{"n":1}'));
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
  t.deepEqual(summarize(all), [
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
    hash: created.hash,
    index: 0,
    sender: alice.publicKey,
    nonce: 1,
    storageAddress: address,
  });
  t.like(all[1]!.program, { storageAddress: address, transactionHash: created.hash });
  likeLists(t, all[13]!.commitments, { commitments: [element(5)] });
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
      const resumed = await chain.listen(query, headers);
      t.deepEqual(await resumed.takeTo(last), all.slice(i + 1), `after ${cursor}`);
      resumed.end();
    }
  }
  const fromThird = await chain.listen("?fromBlock=3");
  t.deepEqual(await fromThird.takeTo(last), all.slice(6));
});

test("filters select events by address, owner, transaction and kind", async (t) => {
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
    t.deepEqual(summarize(await listener.takeTo(last)), expected, query);
    // A progress message states the position, so that a client without matching events resumes there.
    t.is(blockDone(listener.heard.at(-1)!), last, query);
    listener.end();
  }
});

test("callers without read access get only the hashes of a program's transactions", async (t) => {
  const chain = await start(t);
  const address = addressAt("a", 1);
  const { hash } = await chain.write(createPrivate("a", [bob.publicKey]));
  const { number: second } = await chain.write(setField(address, "secret"));
  const redacted = ["1.0 included, withheld", "1 block of 1", "2.0 included, withheld", "2 block of 1"];
  const full = ["1.0 included", "1.1 created", "1 block of 1", "2.0 included", "2.1 fields secret", "2 block of 1"];
  const read = async (query: string, headers: Readonly<Record<string, string>>, last: number) => {
    const listener = await chain.listen(`?fromBlock=1${query}`, headers);
    const events = await listener.takeTo(last);
    listener.end();
    return { events, all: JSON.stringify(listener.heard) };
  };
  for (const headers of [{}, signedBy(carol)]) {
    const { events, all } = await read("", headers, second);
    t.deepEqual(summarize(events), redacted);
    t.deepEqual(events[0], {
      ...{ cursor: "1.0", blockNumber: 1 },
      transaction: { hash, outcome: "included", index: 0, withheld: true },
    });
    for (const secret of [address, "secret", alice.publicKey]) {
      t.false(all.includes(secret), secret);
    }
    for (const query of [`&addresses=${address}`, `&owners=${alice.publicKey}`, "&kinds=program"]) {
      const filtered = await read(query, headers, second);
      t.deepEqual(filtered.events, [], query);
      t.false(filtered.all.includes("."), "no cursor reveals a position within a block");
    }
    t.deepEqual(summarize((await read(`&transactions=${hash}`, headers, second)).events), redacted.slice(0, 1));
  }
  for (const key of [alice, bob]) {
    t.deepEqual(summarize((await read("", signedBy(key), second)).events), full);
    t.deepEqual(summarize((await read(`&owners=${alice.publicKey}&kinds=program`, signedBy(key), second)).events), [
      "1.1 created",
      "2.1 fields secret",
    ]);
  }

  // The access rule at the time of sending applies, whenever the stream started.
  const [ofBob, ofCarol] = [await chain.listen("", signedBy(bob)), await chain.listen("", signedBy(carol))];
  const access = { mode: AccessMode.RESTRICTED, allowed: [carol.publicKey] };
  await chain.write({ case: "updateAccess", value: { storageAddress: address, access } });
  const { number: fourth } = await chain.write(setField(address, "later"));
  t.deepEqual(summarize(await ofBob.takeTo(fourth)), [
    ...["3.0 included, withheld", "3 block of 1"],
    ...["4.0 included, withheld", "4 block of 1"],
  ]);
  t.deepEqual(summarize(await ofCarol.takeTo(fourth)), [
    ...["3.0 included", "3.1 access", "3 block of 1"],
    ...["4.0 included", "4.1 fields later", "4 block of 1"],
  ]);
  t.deepEqual(summarize((await read("", signedBy(bob), 2)).events.slice(0, 4)), redacted);

  const { number: fifth } = await chain.write({ case: "deleteProgram", value: { storageAddress: address } });
  t.deepEqual(summarize((await read(`&addresses=${address}`, signedBy(carol), fifth)).events), []);
  t.true(summarize((await read(`&addresses=${address}`, signedBy(alice), fifth)).events).includes("5.1 deleted"));
});

test("sends live events for rejected transactions and for signed heads", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir, { stateHeadEveryMs: 50 });
  const chain = chainOf(t, node);
  const heads = await chain.listen("?kinds=head");
  const listener = await chain.listen("?kinds=transaction");
  const headEvents = () => heads.heard.filter(({ head }) => head !== undefined);
  await until(() => headEvents().length >= 2);
  t.like(headEvents()[1], { head: { statement: { number: 0, proposer: authority.publicKey } }, cursor: "0" });

  // Both spend the same nullifier. If the first one is in a block already, the second one is rejected on submission.
  for (let i = 1; !listener.heard.some(({ transaction }) => transaction?.outcome === "rejected"); i++) {
    const pair = [2 * i, 2 * i + 1].map((nonce) => signZk(authority, nonce, spend(element(i))));
    const [first, second] = await Promise.allSettled(pair.map((one) => chain.submit(one)));
    t.is(first!.status, "fulfilled");
    await until(() => listener.heard.some(({ transaction }) => transaction?.hash === sha256(pair[0]!.body)));
    if (second!.status === "fulfilled") {
      const hash = sha256(pair[1]!.body);
      await until(() => listener.heard.some(({ transaction }) => transaction?.hash === hash));
      const events = listener.heard.filter(({ transaction }) => transaction?.hash === hash);
      t.is(events.length, 1);
      t.is(events[0]!.transaction!.outcome, "rejected");
      t.regex(events[0]!.transaction!.reason!, /^The nullifier is spent already/);
      t.is(events[0]!.transaction!.index, undefined);
    }
  }
  const cursors = listener.heard.map(blockDone);
  t.deepEqual(
    cursors,
    [...cursors].sort((a, b) => a - b),
  );
});

test("a stream from a future block waits for that block", async (t) => {
  const chain = await start(t);
  const listener = await chain.listen("?fromBlock=3&kinds=block");
  t.like(listener.heard[0] ?? (await firstOf(listener)), { cursor: "0", progress: {} });
  for (let i = 1; i <= 4; i++) {
    await chain.write(createPublic(`p${i}`, "{}"));
  }
  t.deepEqual(summarize(await listener.take(2)), ["3 block of 1", "4 block of 1"]);
  // A cursor of another node may be ahead of this one.
  const ahead = chain.listen("?from=5.1&kinds=transaction&kinds=program&kinds=block");
  await chain.write(createPublic("p5", "{}"));
  t.deepEqual(summarize(await (await ahead).take(1)), ["5 block of 1"]);
});

async function firstOf(listener: Listener): Promise<EventJson> {
  await until(() => listener.heard.length > 0);
  return listener.heard[0]!;
}

test("rejects an invalid parameter with 400 and a message that names it", async (t) => {
  const chain = await start(t);
  const invalid: readonly [query: string, message: RegExp][] = [
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
  for (const [query, message] of invalid) {
    const { status, text } = await ask(chain.node.port, `/events${query}`);
    const { errorCode, error } = JSON.parse(text) as { errorCode: string; error: string };
    t.deepEqual([status, errorCode], [400, "INVALID_REQUEST"], query);
    t.regex(error, message);
  }
  const { status } = await ask(chain.node.port, "/events", { headers: { "last-event-id": "what?" } });
  t.is(status, 400);
});

test("a node without a chain responds with 503", async (t) => {
  const node = await startTestNode(t);
  const { status, text } = await ask(node.port, "/events");
  t.is(status, 503);
  t.regex(text, /STATE_NOT_READY/);
});

test("a browser's EventSource receives all events across a restart of the node", async (t) => {
  const fixed = await fixedPort();
  const chain = await start(t, fixed);
  const { port, dir } = chain.node;
  const cursors: string[] = [];
  let source: EventSource | undefined;
  t.teardown(() => source?.close());
  const listenFrom = (query: string): void => {
    const opened = (source = new EventSource(`http://127.0.0.1:${port}/events?kinds=block&${query}`));
    opened.addEventListener("block", ({ lastEventId }) => cursors.push(lastEventId));
    opened.addEventListener("error", () => {
      // It ends for good if it reconnects while the node boots, which responds with 503.
      if (opened.readyState === EventSource.CLOSED) {
        setTimeout(() => listenFrom(`from=${cursors.at(-1)}`), 100);
      }
    });
  };
  listenFrom("fromBlock=1");
  await chain.write(createPublic("a", "{}"));
  await chain.write(createPublic("b", "{}"));
  await until(() => cursors.length === 2);
  await chain.node.stop();
  const restarted = chainOf(
    t,
    await startTestNode(t, { genesis: "genesis.json", "loop-interval": "0.1", ...fixed }, dir),
  );
  await restarted.apply(signTransaction(carol, 1, createPublic("c", "{}")));
  await until(() => cursors.length >= 3);
  t.deepEqual(cursors, ["1", "2", "3"]);
});

test("a node that stops ends all streams without an error message", async (t) => {
  const chain = await start(t);
  const listeners = await Promise.all([chain.listen(), chain.listen("?fromBlock=100"), chain.listen("?kinds=head")]);
  await Promise.all(listeners.map(firstOf));
  await chain.node.stop();
  await until(() => listeners.every(({ isOver }) => isOver));
  t.true(listeners.every(({ heard }) => heard.every((one) => one.errorCode === undefined)));
});

test("a reader sends the events of blocks that another node writes", async (t) => {
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

test("limits the streams of an address with 429, without blocking its other requests", async (t) => {
  const chain = await start(t, { "streams-per-address": "3", "rate-limit-exempt": "192.0.2.1" });
  const open = await Promise.all([chain.listen(), chain.listen(), chain.listen()]);
  const { status, text } = await ask(chain.node.port, "/events");
  t.is(status, 429);
  t.regex(text, /TOO_MANY_STREAMS/);
  t.is((await ask(chain.node.port, "/version")).status, 200);
  open[0]!.end();
  await until(async () => {
    const next = await chain.listen();
    return next.status === 200;
  });
});

test("a cursor ahead of the chain waits for its block, and is refused if the block does not come", async (t) => {
  const chain = await start(t);
  const { number } = await chain.write(createPublic("first", "{}"));
  const waiting = chain.listen(`?from=${number + 1}&kinds=block`);
  const second = await chain.write(createPublic("second", "{}"));
  t.is(second.number, number + 1);
  const third = await chain.write(createPublic("third", "{}"));
  const listener = await waiting;
  t.is(listener.status, 200);
  await until(() => listener.heard.some((event) => event.block?.header.number === third.number));
  const blocks = listener.heard.flatMap(({ block }) => (block === undefined ? [] : [block.header.number]));
  t.deepEqual(blocks, [third.number], "the block of the cursor is not sent again");

  const refused = await ask(chain.node.port, "/events?from=500");
  t.is(refused.status, 503);
  const { errorCode, error } = JSON.parse(refused.text) as { errorCode: string; error: string };
  t.is(errorCode, "STATE_NOT_READY");
  t.regex(error, new RegExp(`block 500, and this node is at block ${third.number}\\.`));
});

test("progress of a stream that starts with a future block is that of the chain", async (t) => {
  const chain = await start(t);
  const { number } = await chain.write(createPublic("first", "{}"));
  const { text } = await ask(chain.node.port, `/chain/head`);
  t.is((JSON.parse(text) as { number: number }).number, number);
  const listener = await chain.listen("?fromBlock=500&kinds=block");
  await until(() => listener.heard.length > 0);
  t.is(listener.heard[0]!.cursor, String(number));
});
