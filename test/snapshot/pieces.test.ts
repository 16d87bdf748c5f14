/** The verification of each piece during a snapshot sync: a wrong piece drops its sender, and stored pieces stay. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import test, { type ExecutionContext } from "ava";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Snapshot, SnapshotSchema } from "../../gen/gatehouse/peer/v1/snapshot_pb.js";
import { toHex32 } from "../../src/base/crypto/hash.js";
import { createBlockChanges, createBlockStore } from "../../src/chain/blocks/block-store.js";
import { parseGenesis } from "../../src/chain/blocks/genesis.js";
import { listHeaders } from "../../src/chain/blocks/header-store.js";
import { decodeHeader } from "../../src/chain/transactions/transaction.js";
import type { Database } from "../../src/db/queries/database.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { migrate } from "../../src/node/migrations/migrate.js";
import { openDatabase, openForReading } from "../../src/db/open.js";
import { createSnapshotTarget } from "../../src/node/network/snapshot-target.js";
import { writeSnapshot } from "../../src/node/chain/snapshots.js";
import { openStoredData } from "../../src/node/data/stored-data.js";
import { createSnapshotSync, type SnapshotSyncOutcome } from "../../src/snapshot/sync.js";
import type { SnapshotPeers } from "../../src/snapshot/download.js";
import { readSync } from "../../src/snapshot/sync-store.js";
import { chunkName } from "../../src/snapshot/build.js";
import { createPageStore } from "../../src/tree/page-store.js";
import { readRoot } from "../../src/tree/read-root.js";
import { listLeaves } from "../../src/zk/snapshot-store.js";
import { inlinePool } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { genesisOf, testKey } from "../helpers/chain/keys.js";
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
/** The indexes of the chunks that are not empty. */
let nonEmpty: number[];

test.before(async () => {
  const dir = await temporaryDirectory(shared);
  const file = join(dir, "source.sqlite");
  await makeRichChain(file, authority, 12);
  source = await openDatabase(`sqlite:${file}`);
  shared.teardown(() => source.close());
  folder = join(dir, "snapshot");
  const readOnly = await openForReading(`sqlite:${file}`);
  const head = (await createBlockStore(readOnly.read).head())!;
  const options = { folder, signal: never, chunkBytes: 8 * 1024 };
  description = Buffer.from(await readOnly.withSnapshot((db) => writeSnapshot(db, head, options)));
  await readOnly.close();
  stateRoot = decodeHeader(head.header).stateRoot;
  nonEmpty = describe().chunks.flatMap(({ node }, i) => (node.case === undefined ? [] : [i]));
});

const describe = (): Snapshot => fromBinary(SnapshotSchema, Uint8Array.from(description));

/** A peer that the sync dropped. */
interface DroppedPeer {
  readonly endpoint: string;
  readonly cause: string;
}

/** The changes that a dishonest peer makes to its responses. */
interface Tampering {
  readonly snapshot?: (bytes: Buffer) => Uint8Array;
  readonly chunk?: (index: number, bytes: Buffer) => Uint8Array;
  readonly headers?: (headers: { header: Uint8Array; signature: Uint8Array }[]) => void;
  readonly leaves?: (leaves: Uint8Array) => Uint8Array;
}

const offline = new Error("The peer is offline.");

/** The members of all requests. */
interface Request {
  readonly chunk: number;
  readonly from: number;
  readonly fromNumber: bigint;
  readonly count: number;
}

async function respond(method: string, { chunk, from, fromNumber, count }: Request, tampering: Tampering) {
  switch (method) {
    case "ListSnapshots":
      return { snapshot: tampering.snapshot?.(Buffer.from(description)) ?? description };
    case "GetSnapshotChunk": {
      const bytes = await readFile(join(folder, chunkName(chunk)));
      return { data: tampering.chunk?.(chunk, bytes) ?? bytes };
    }
    case "ListHeaders": {
      const headers = await listHeaders(source.read, Number(fromNumber), count);
      tampering.headers?.(headers);
      return { headers };
    }
    default: {
      const leaves = Buffer.concat(await listLeaves(source.read, from, count));
      return { leaves: tampering.leaves?.(leaves) ?? leaves };
    }
  }
}

function peersOf(tampering: Readonly<Record<string, Tampering>>, dropped: DroppedPeer[]): SnapshotPeers {
  return {
    list: () => Object.keys(tampering),
    async *stream(endpoint, { name }, request) {
      yield (await respond(name, request as Request, tampering[endpoint]!)) as never;
    },
    drop: (endpoint, cause) => void dropped.push({ endpoint, cause }),
    isUnanswered: (error) => error === offline,
  };
}

async function openTarget(t: Teardown, engine: Engine, url?: string): Promise<Database> {
  const database = await openDatabase(url ?? (await engines.createUrl(t, engine)));
  t.teardown(() => database.close());
  await migrate(database);
  await createBlockChanges(database.write).insertGenesis(genesis);
  return database;
}

function createSync({ read, transaction }: Database, peers: SnapshotPeers, nowMs = Date.now) {
  const deps = { database: { read }, transaction, genesis, foldAll: inlinePool.foldAll, minBlock: 1n };
  return createSnapshotSync({ peers, target: createSnapshotTarget(deps), nowMs, onChosen: () => undefined });
}

/** Runs one attempt of a snapshot sync with these peers. */
async function attempt(database: Database, peers: Readonly<Record<string, Tampering>>) {
  const dropped: DroppedPeer[] = [];
  const outcome = await createSync(database, peersOf(peers, dropped)).attempt(never);
  return { outcome, dropped };
}

const rootIn = async ({ read }: Database): Promise<string> => toHex32(await readRoot(createPageStore(read, "").load));

/** Syncs from an honest peer. */
async function expectCompleted(t: ExecutionContext, database: Database): Promise<void> {
  t.is((await attempt(database, { honest: {} })).outcome, "completed");
  t.is(await rootIn(database), stateRoot);
}

test("drops the sender of each of 100 corrupted chunks", async (t) => {
  const database = await openTarget(t, "sqlite");
  t.true(nonEmpty.length > 10);
  for (let i = 0; i < 100; i++) {
    const endpoint = `faulty ${i}`;
    const corrupt = (_: number, bytes: Buffer): Uint8Array => {
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
    const { outcome, dropped } = await attempt(database, { [endpoint]: { chunk: corrupt } });
    t.is(outcome, "interrupted");
    t.deepEqual(dropped[0], { endpoint, cause: "dishonest" }, `corruption ${i}`);
  }
  t.is((await readSync(database.read))?.chunks.size, 0);
  // A valid chunk at the wrong index.
  const other = (index: number): number => nonEmpty[(nonEmpty.indexOf(index) + 1) % nonEmpty.length]!;
  const swapper = { chunk: (index: number) => readFileSync(join(folder, chunkName(other(index)))) };
  const { dropped } = await attempt(database, { swapper, honest: {} });
  t.deepEqual(dropped, [{ endpoint: "swapper", cause: "dishonest" }]);
  t.is(await rootIn(database), stateRoot);
  t.is(await readSync(database.read), undefined);
});

for (const engine of engines.names) {
  test(`${engine}: a sync interrupted at any chunk fetches only that chunk again`, async (t) => {
    const url = await engines.createUrl(t, engine);
    const database = await openTarget(t, engine, url);
    const fetched: number[] = [];
    let remaining = 0;
    const chunk = (index: number, bytes: Buffer): Uint8Array => {
      if (remaining-- <= 0) {
        throw offline;
      }
      fetched.push(index);
      return bytes;
    };
    let outcome: SnapshotSyncOutcome = "interrupted";
    for (let tries = 0; outcome === "interrupted" && tries < nonEmpty.length; tries++) {
      remaining = 3;
      const stored = (await readSync(database.read))?.chunks.size ?? 0;
      ({ outcome } = await attempt(database, { halting: { chunk } }));
      const now = (await readSync(database.read))?.chunks.size ?? nonEmpty.length;
      t.true(now > stored);
      t.is((await createBlockStore(database.read).head()) === undefined, outcome === "interrupted");
      if (outcome === "interrupted") {
        // A partial state is not reported as corruption.
        await t.throwsAsync(openStoredData(url), { message: /^The database has a part of a snapshot/ });
      }
    }
    t.is(outcome, "completed");
    t.deepEqual(
      fetched.toSorted((a, b) => a - b),
      nonEmpty,
    );
    t.is(await rootIn(database), stateRoot);
    t.is((await createBlockStore(database.read).head())?.number, 12n);
  });
}

test("drops the sender of headers or leaves that are not those of the chain", async (t) => {
  const variants: Record<string, Tampering> = {
    "a bit of a header": { headers: (headers) => (headers[5]!.header[20]! ^= 1) },
    "a bit of a signature": { headers: (headers) => (headers[5]!.signature[20]! ^= 1) },
    "a missing header": { headers: (headers) => headers.pop() },
    "headers in another order": { headers: (headers) => headers.reverse() },
    "a bit of a leaf": { leaves: (leaves) => leaves.map((byte, i) => (i === 31 ? byte ^ 1 : byte)) },
    "a missing leaf": { leaves: (leaves) => leaves.subarray(32) },
    "a repeated leaf": { leaves: (leaves) => Buffer.concat([leaves.subarray(0, 32), leaves.subarray(0, -32)]) },
  };
  for (const [name, tampering] of Object.entries(variants)) {
    const database = await openTarget(t, "sqlite");
    const { dropped } = await attempt(database, { [name]: tampering });
    t.deepEqual(dropped[0], { endpoint: name, cause: "dishonest" }, name);
    await expectCompleted(t, database);
  }
});

test("rejects invalid descriptions, and removes the pieces that belong to them", async (t) => {
  const change = (edit: (snapshot: Snapshot) => unknown) => (): Uint8Array => {
    const snapshot = describe();
    edit(snapshot);
    return toBinary(SnapshotSchema, snapshot);
  };
  const other = testKey(5);
  const rejectedAtOnce = {
    "no snapshot": () => Buffer.from("no snapshot"),
    "a node of a chunk": change(({ chunks }) => ((chunks[nonEmpty[3]!]!.node.value as Uint8Array)[4]! ^= 1)),
    "a missing chunk": change(({ chunks }) => chunks.pop()),
    "a repeated chunk": change(({ chunks }) => chunks.push(chunks[0]!)),
    "chunks in another order": change(({ chunks }) => chunks.reverse()),
    "another header": change((snapshot) => (snapshot.header = new Uint8Array(snapshot.header.length))),
    "a header of another signer": change((snapshot) => (snapshot.signature = other.sign(snapshot.header))),
    "a part of the leaves": change(({ commitmentTree }) => (commitmentTree!.parts[0]![4]! ^= 1)),
  };
  const rejectedLater = {
    "a digest": change(({ chunks }) => (chunks[nonEmpty[3]!]!.sha256[4]! ^= 1)),
    "another number of programs": change((snapshot) => snapshot.programCount++),
    "a missing root": change(({ commitmentTree }) => commitmentTree!.knownRoots.splice(-2, 1)),
    "a missing oldest root": change(({ commitmentTree }) => commitmentTree!.knownRoots.shift()),
    "another leaf count of a root": change(({ commitmentTree }) => commitmentTree!.knownRoots.at(-2)!.leafCount--),
    "another block of a root": change(({ commitmentTree }) => (commitmentTree!.knownRoots.at(-2)!.blockNumber += 1n)),
  };
  for (const [name, snapshot] of Object.entries(rejectedAtOnce)) {
    const database = await openTarget(t, "sqlite");
    const { outcome, dropped } = await attempt(database, { [name]: { snapshot } });
    t.is(outcome, "none", name);
    t.deepEqual(dropped, [{ endpoint: name, cause: "dishonest" }], name);
  }
  const database = await openTarget(t, "sqlite");
  for (const [name, snapshot] of Object.entries(rejectedLater)) {
    const { outcome, dropped } = await attempt(database, { [name]: { snapshot } });
    t.is(outcome, "interrupted", name);
    t.deepEqual(dropped[0], { endpoint: name, cause: "dishonest" }, name);
  }
  await expectCompleted(t, database);
});

test("keeps a started snapshot for ten minutes while its peers do not respond", async (t) => {
  const clock = { nowMs: 0 };
  const offers: Record<string, "all" | "nothing" | "no response"> = { source: "all", other: "nothing" };
  const honest = peersOf({ source: {}, other: {} }, []);
  const peers: SnapshotPeers = {
    ...honest,
    list: () => Object.keys(offers),
    async *stream(endpoint, method, request, signal) {
      if (offers[endpoint] === "no response" || method.name === "GetSnapshotChunk") {
        throw offline;
      }
      if (method.name !== "ListSnapshots" || offers[endpoint] === "all") {
        yield* honest.stream(endpoint, method, request, signal);
      }
    },
  };
  const database = await openTarget(t, "sqlite");
  const start = () => createSync(database, peers, () => clock.nowMs);
  const isStored = async (sync: ReturnType<typeof start>): Promise<boolean> => {
    await sync.attempt(never);
    return (await readSync(database.read)) !== undefined;
  };
  const first = start();
  t.true(await isStored(first));
  offers.source = "no response";
  t.true(await isStored(first));
  t.true(await isStored(start()), "after a restart");
  // The peer is not in the list any more, until it is back.
  delete offers.source;
  clock.nowMs = 599_999;
  t.true(await isStored(first));
  clock.nowMs = 600_000;
  t.false(await isStored(first));

  offers.source = "all";
  t.true(await isStored(first));
  offers.source = "nothing";
  t.false(await isStored(first), "its only peer responded without it");
});
