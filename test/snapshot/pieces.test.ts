/** Every piece of a snapshot is looked at when it comes; who sends a wrong one is named, and what is stored stays. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import test from "ava";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Snapshot, SnapshotSchema } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { toHex32 } from "../../src/base/crypto/hash.js";
import { createBlockChanges, createBlockStore } from "../../src/chain/blocks/block-store.js";
import { parseGenesis } from "../../src/chain/blocks/genesis.js";
import { listHeaders } from "../../src/chain/blocks/header-store.js";
import { describeHeader } from "../../src/chain/transactions/transaction.js";
import type { Database } from "../../src/db/queries/database.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { migrate } from "../../src/db/migrations/migrate.js";
import { openDatabase, openForReading } from "../../src/db/open.js";
import { createSnapshotTarget } from "../../src/node/network/snapshot-target.js";
import { writeSnapshot } from "../../src/node/chain/snapshots.js";
import { openStoredData } from "../../src/node/data/stored-data.js";
import { createSnapshotSync, type SnapshotSyncOutcome } from "../../src/snapshot/sync.js";
import type { SnapshotPeers } from "../../src/snapshot/sources.js";
import { readSync } from "../../src/snapshot/sync-store.js";
import { chunkName } from "../../src/snapshot/build.js";
import { createPageStore } from "../../src/tree/page-store.js";
import { readRoot } from "../../src/tree/read-root.js";
import { listLeaves } from "../../src/zk/snapshot-store.js";
import { inlinePool } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { genesisOf } from "../helpers/chain/genesis.js";
import { testKey } from "../helpers/chain/keys.js";
import { makeRichChain } from "../helpers/chain/rich-chain.js";
import { fileTeardown, type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const authority = testKey(1);
const genesis = parseGenesis("of the test", genesisOf(authority));
const shared = fileTeardown();
const never = new AbortController().signal;

let source: Database;
let folder: string;
let description: Buffer;
let stateRoot: string;
/** Chunks with something in them. */
let full: number[];

test.before(async () => {
  const dir = await temporaryDirectory(shared);
  const file = join(dir, "made.sqlite");
  await makeRichChain(file, authority, 12);
  source = await openDatabase(`sqlite:${file}`);
  shared.teardown(() => source.close());
  folder = join(dir, "made");
  const reading = await openForReading(`sqlite:${file}`);
  const head = (await createBlockStore(reading.read).head())!;
  const given = { folder, signal: never, chunkBytes: 8 * 1024 };
  description = Buffer.from(await reading.withSnapshot((db) => writeSnapshot(db, head, given)));
  await reading.close();
  stateRoot = describeHeader(head.header).stateRoot;
  full = describe().chunks.flatMap(({ node }, i) => (node.case === undefined ? [] : [i]));
});

const describe = (): Snapshot => fromBinary(SnapshotSchema, Uint8Array.from(description));

/** What happened to a peer. */
interface Left {
  readonly endpoint: string;
  readonly cause: string;
}

/** What peers send instead of what they should. */
interface Lies {
  readonly snapshot?: (bytes: Buffer) => Uint8Array;
  readonly chunk?: (index: number, bytes: Buffer) => Uint8Array;
  readonly headers?: (headers: { header: Uint8Array; signature: Uint8Array }[]) => void;
  readonly leaves?: (leaves: Uint8Array) => Uint8Array;
}

const gone = new Error("It is gone.");

function peersOf(all: Readonly<Record<string, Lies>>, left: Left[]): SnapshotPeers {
  return {
    list: () => Object.keys(all),
    async *snapshots(endpoint) {
      yield await Promise.resolve(all[endpoint]!.snapshot?.(Buffer.from(description)) ?? description);
    },
    async *chunk(endpoint, _, index) {
      const bytes = await readFile(join(folder, chunkName(index)));
      yield all[endpoint]!.chunk?.(index, bytes) ?? bytes;
    },
    async *headers(endpoint, from, count) {
      const headers = await listHeaders(source.read, from, count);
      all[endpoint]!.headers?.(headers);
      yield headers as never;
    },
    async *leaves(endpoint, from, count) {
      const leaves = Buffer.concat(await listLeaves(source.read, from, count));
      yield all[endpoint]!.leaves?.(leaves) ?? leaves;
    },
    drop: (endpoint, cause) => void left.push({ endpoint, cause }),
    isUnanswered: (error) => error === gone,
  };
}

async function openTarget(t: Teardown, engine: Engine, url?: string): Promise<Database> {
  const database = await openDatabase(url ?? (await engines.createUrl(t, engine)));
  t.teardown(() => database.close());
  await migrate(database);
  await createBlockChanges(database.write).insertGenesis(genesis);
  return database;
}

async function attempt(database: Database, all: Readonly<Record<string, Lies>>) {
  const left: Left[] = [];
  const { transaction } = database;
  const target = createSnapshotTarget({ database, transaction, genesis, foldAll: inlinePool.foldAll, minBlock: 1n });
  const join = createSnapshotSync({ peers: peersOf(all, left), target, nowMs: Date.now, onChosen: () => undefined });
  const outcome: SnapshotSyncOutcome = await join.attempt(never);
  return { outcome, left };
}

const rootIn = async ({ read }: Database): Promise<string> => toHex32(await readRoot(createPageStore(read, "").load));

test("100 corrupted chunks: each is refused, and whoever sent it is named", async (t) => {
  const database = await openTarget(t, "sqlite");
  t.true(full.length > 10);
  for (let i = 0; i < 100; i++) {
    const endpoint = `liar ${i}`;
    const spoil = (_: number, bytes: Buffer): Uint8Array => {
      const at = (i * 7919) % bytes.length;
      const kinds = [
        () => (bytes[at]! ^= 1 << (i % 8)),
        () => (bytes = bytes.subarray(0, at)),
        () => (bytes = Buffer.concat([bytes.subarray(0, at), bytes])),
        () => (bytes = Buffer.alloc(bytes.length)),
      ];
      kinds[i % kinds.length]!();
      return bytes;
    };
    const { outcome, left } = await attempt(database, { [endpoint]: { chunk: spoil } });
    t.is(outcome, "interrupted");
    t.deepEqual(left[0], { endpoint, cause: "dishonest" }, `corruption ${i}`);
  }
  t.is((await readSync(database.read))?.chunks.size, 0);
  // A chunk of another place is right in itself, and not there.
  const { left } = await attempt(database, {
    swapper: {
      chunk: (index) => readFileSync(join(folder, chunkName(full[(full.indexOf(index) + 1) % full.length]!))),
    },
    honest: {},
  });
  t.deepEqual(left, [{ endpoint: "swapper", cause: "dishonest" }]);
  t.is(await rootIn(database), stateRoot);
  t.is(await readSync(database.read), undefined);
});

for (const engine of engines.names) {
  test(`what ends a join over ${engine} at any chunk costs that chunk alone`, async (t) => {
    const url = await engines.createUrl(t, engine);
    const database = await openTarget(t, engine, url);
    const fetched: number[] = [];
    let mayFetch = 0;
    const chunk = (index: number, bytes: Buffer): Uint8Array => {
      if (mayFetch-- <= 0) {
        throw gone;
      }
      fetched.push(index);
      return bytes;
    };
    let outcome: SnapshotSyncOutcome = "interrupted";
    for (let tries = 0; outcome === "interrupted" && tries < full.length; tries++) {
      mayFetch = 3;
      const stored = (await readSync(database.read))?.chunks.size ?? 0;
      ({ outcome } = await attempt(database, { halting: { chunk } }));
      const now = (await readSync(database.read))?.chunks.size ?? full.length;
      t.true(now > stored);
      t.is((await createBlockStore(database.read).head()) === undefined, outcome === "interrupted");
      if (outcome === "interrupted") {
        // A part of a state is no damage.
        await t.throwsAsync(openStoredData(url), { message: /^The database has a part of a snapshot/ });
      }
    }
    t.is(outcome, "completed");
    t.deepEqual(
      fetched.toSorted((a, b) => a - b),
      full,
    );
    t.is(await rootIn(database), stateRoot);
    t.is((await createBlockStore(database.read).head())?.number, 12n);
  });
}

test("headers and leaves that are not those of the chain are refused, and whoever sent them is named", async (t) => {
  const lies: Record<string, Lies> = {
    "a bit of a header": { headers: (headers) => (headers[5]!.header[20]! ^= 1) },
    "a bit of a signature": { headers: (headers) => (headers[5]!.signature[20]! ^= 1) },
    "a header too few": { headers: (headers) => headers.pop() },
    "headers in another order": { headers: (headers) => headers.reverse() },
    "a bit of a leaf": { leaves: (leaves) => leaves.map((byte, i) => (i === 31 ? byte ^ 1 : byte)) },
    "a leaf too few": { leaves: (leaves) => leaves.subarray(32) },
    "a leaf twice": { leaves: (leaves) => Buffer.concat([leaves.subarray(0, 32), leaves.subarray(0, -32)]) },
  };
  for (const [name, lie] of Object.entries(lies)) {
    const database = await openTarget(t, "sqlite");
    t.deepEqual((await attempt(database, { [name]: lie })).left[0], { endpoint: name, cause: "dishonest" }, name);
    const { outcome } = await attempt(database, { honest: {} });
    t.is(outcome, "completed", name);
    t.is(await rootIn(database), stateRoot);
  }
});

test("a description that cannot be is refused, and what it led to is taken out again", async (t) => {
  const change = (by: (snapshot: Snapshot) => unknown) => (): Uint8Array => {
    const snapshot = describe();
    by(snapshot);
    return toBinary(SnapshotSchema, snapshot);
  };
  const other = testKey(5);
  const early = {
    "no snapshot": () => Buffer.from("no snapshot"),
    "a node of a chunk": change(({ chunks }) => ((chunks[full[3]!]!.node.value as Uint8Array)[4]! ^= 1)),
    "a chunk too few": change(({ chunks }) => chunks.pop()),
    "a chunk twice": change(({ chunks }) => chunks.push(chunks[0]!)),
    "chunks in another order": change(({ chunks }) => chunks.reverse()),
    "another header": change((snapshot) => (snapshot.header = new Uint8Array(snapshot.header.length))),
    "a header of somebody else": change((snapshot) => (snapshot.signature = other.sign(snapshot.header))),
    "a part of the leaves": change(({ commitmentTree }) => (commitmentTree!.parts[0]![4]! ^= 1)),
  };
  const late = {
    "a digest": change(({ chunks }) => (chunks[full[3]!]!.sha256[4]! ^= 1)),
    "another number of programs": change((snapshot) => snapshot.programCount++),
    "a root left out": change(({ commitmentTree }) => commitmentTree!.knownRoots.splice(-2, 1)),
    "the oldest root left out": change(({ commitmentTree }) => commitmentTree!.knownRoots.shift()),
    "leaves of a root": change(({ commitmentTree }) => commitmentTree!.knownRoots.at(-2)!.leafCount--),
    "a block of a root": change(({ commitmentTree }) => (commitmentTree!.knownRoots.at(-2)!.blockNumber += 1n)),
  };
  for (const [name, snapshot] of Object.entries(early)) {
    const database = await openTarget(t, "sqlite");
    const { outcome, left } = await attempt(database, { [name]: { snapshot } });
    t.is(outcome, "none", name);
    t.deepEqual(left, [{ endpoint: name, cause: "dishonest" }], name);
  }
  const database = await openTarget(t, "sqlite");
  for (const [name, snapshot] of Object.entries(late)) {
    const { outcome, left } = await attempt(database, { [name]: { snapshot } });
    t.is(outcome, "interrupted", name);
    t.deepEqual(left[0], { endpoint: name, cause: "dishonest" }, name);
  }
  const { outcome } = await attempt(database, { honest: {} });
  t.is(outcome, "completed");
  t.is(await rootIn(database), stateRoot);
});

test("a snapshot that was begun is kept while those who have it do not answer, and no longer than ten minutes", async (t) => {
  const clock = { nowMs: 0 };
  const offers: Record<string, "all" | "nothing" | "no answer"> = { source: "all", other: "nothing" };
  const peers: SnapshotPeers = {
    ...peersOf({ source: {}, other: {} }, []),
    list: () => Object.keys(offers),
    async *snapshots(endpoint) {
      await Promise.resolve();
      if (offers[endpoint] === "no answer") {
        throw gone;
      }
      yield* offers[endpoint] === "all" ? [description] : [];
    },
    chunk() {
      throw gone;
    },
  };
  const database = await openTarget(t, "sqlite");
  const { transaction } = database;
  const target = createSnapshotTarget({ database, transaction, genesis, foldAll: inlinePool.foldAll, minBlock: 1n });
  const start = () => createSnapshotSync({ peers, target, nowMs: () => clock.nowMs, onChosen: () => undefined });
  const isKept = async (sync: ReturnType<typeof start>): Promise<boolean> => {
    await sync.attempt(never);
    return (await readSync(database.read)) !== undefined;
  };
  const first = start();
  t.true(await isKept(first));
  offers.source = "no answer";
  t.true(await isKept(first));
  t.true(await isKept(start()), "after a restart");
  // It is not even asked any more, until it is there again.
  delete offers.source;
  clock.nowMs = 599_999;
  t.true(await isKept(first));
  clock.nowMs = 600_000;
  t.false(await isKept(first));

  offers.source = "all";
  t.true(await isKept(first));
  offers.source = "nothing";
  t.false(await isKept(first), "whoever had it has answered");
});
