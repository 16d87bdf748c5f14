/** Changes eight bytes anywhere in a database file: every response is the original one or an error. */
import test from "ava";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCorruptionMonitor, type CorruptionMonitor } from "../../src/base/errors/corruption.js";
import { isDatabaseError } from "../../src/base/errors/database-error-kind.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import { readStoredGenesis } from "../../src/chain/blocks/genesis.js";
import type { Database } from "../../src/db/queries/database.js";
import { openDatabase } from "../../src/db/open.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import {
  monitorNullifiers,
  monitorPrograms,
  monitorStore,
  monitorTree,
} from "../../src/node/chain/corruption-monitoring.js";
import { verifyAll } from "../../src/node/data/verify-data.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import { createNullifierStore } from "../../src/zk/nullifier-store.js";
import { createTreeStore } from "../../src/zk/tree-store.js";
import { ask } from "../helpers/wire/plain-client.js";
import { createRandom } from "../helpers/wire/random-message.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { alice, authority, pathsOf, type StoredChain, storeChain } from "../helpers/chain/stored-chain.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const seed = Number(process.env["SEED"] ?? 20_261_122);
const trials = 100;
const nodeTrials = 6;

const page = { limit: 50, offset: 0 };

/** All queries of the stores, by name. */
function queriesOf(
  database: Database,
  monitor: CorruptionMonitor,
  stored: StoredChain,
): Map<string, () => Promise<unknown>> {
  const store = monitorStore(createChainStore(database, stateIn), monitor);
  const programs = monitorPrograms(createProgramStore(database.read), monitor);
  const tree = monitorTree(createTreeStore(database.read), monitor);
  const nullifiers = monitorNullifiers(createNullifierStore(database.read), monitor);
  const { blocks, blockHashes, transactions, small, large, empty, commitments, nullifier } = stored;
  const queries = new Map<string, () => Promise<unknown>>();
  for (let number = 1n; number <= blocks; number++) {
    queries.set(`block ${number}`, () => store.block(number));
  }
  // The size of a block only limits the size of responses, so it is not compared.
  blockHashes.forEach((hash) => queries.set(`block ${hash}`, async () => (await store.blockSize({ hash }))?.number));
  transactions.forEach((hash) => queries.set(`transaction ${hash}`, () => store.transactionStatus(hash)));
  queries.set("head", () => store.head());
  queries.set("nonce", () => store.lastNonce(alice.publicKey));
  for (const address of [small, large, empty]) {
    queries.set(`program ${address}`, () => programs.findWithData(address));
  }
  for (const name of ["title", "more", "items"]) {
    queries.set(`field ${name}`, () => programs.findWithField(small, name));
  }
  for (const name of ["title", "text", "list", "end"]) {
    queries.set(`large field ${name}`, () => programs.findWithField(large, name));
  }
  for (const index of [0, 3_000, 6_000]) {
    queries.set(`item ${index}`, () => programs.findWithItem(large, "list", index));
  }
  queries.set("list", () => programs.listByOwner(alice.publicKey, undefined, page));
  queries.set("search", () => programs.search("one", false, undefined, page));
  queries.set("root", async () => await tree.root());
  for (const commitment of commitments) {
    queries.set(`path ${commitment}`, async () => await tree.path(commitment, undefined));
  }
  queries.set("nullifier", async () => await nullifiers.find(nullifier));
  return queries;
}

const toText = (value: unknown): string =>
  value === undefined
    ? "nothing"
    : JSON.stringify(value, (_, member: unknown) => (typeof member === "bigint" ? `${member}n` : member));

/** Runs a query, and returns its result as text; undefined for an error of the database. */
async function resultOf(query: () => Promise<unknown>): Promise<string | undefined> {
  try {
    return toText(await query());
  } catch (error) {
    if (isDatabaseError(error)) {
      return undefined;
    }
    throw error;
  }
}

/** Writes a copy in which some bits are flipped, and returns its path. */
async function writeFlipped(t: Teardown, bytes: Buffer, offset: number, mask: Buffer): Promise<string> {
  const file = join(await temporaryDirectory(t), "flipped.sqlite");
  const changed = Buffer.from(bytes);
  for (let i = 0; i < mask.length; i++) {
    changed[offset + i]! ^= mask[i]!;
  }
  await writeFile(file, changed);
  return file;
}

test.serial(
  `with eight bytes changed, the stores return the original results or errors (${trials} trials, seed ${seed})`,
  async (t) => {
    const random = createRandom(seed);
    const source = join(await temporaryDirectory(t), "source.sqlite");
    const stored = await storeChain(`sqlite:${source}`);
    const bytes = await readFile(source);
    const mempool = await readFile(`${source}-mempool`);
    const originals = new Map<string, string>();
    const intact = await openDatabase(`sqlite:${source}`);
    const unusedMonitor = createCorruptionMonitor(() => undefined);
    for (const [name, query] of queriesOf(intact, unusedMonitor, stored)) {
      originals.set(name, (await resultOf(query))!);
    }
    const genesis = (await readStoredGenesis(createChainStore(intact, stateIn)))!;
    await intact.close();
    const counts = { unopenable: 0, detected: 0, undetected: 0 };

    for (let trial = 0; trial < trials; trial++) {
      const offset = Math.floor(random() * (bytes.length - 8));
      const mask = Buffer.from(Array.from({ length: 8 }, () => 1 + Math.floor(random() * 255)));
      const file = await writeFlipped(t, bytes, offset, mask);
      await writeFile(`${file}-mempool`, mempool);
      const where = `trial ${trial}, offset ${offset} of ${bytes.length}`;
      let database: Database;
      try {
        database = await openDatabase(`sqlite:${file}`);
      } catch {
        counts.unopenable++;
        continue;
      }
      try {
        const monitor = createCorruptionMonitor(() => undefined);
        const queries = queriesOf(database, monitor, stored);
        // Before the verification, a result is an original one or empty: a lost row is not noticed yet.
        for (const [name, query] of queries) {
          const result = await resultOf(query).catch((error: unknown) => `${where}, ${name}: ${String(error)}`);
          const isMissing =
            name === "list" || name === "search" || /^nothing$|"missing"|^\{"hash":"0x\w+"\}$/.test(result ?? "");
          const isAbsent = isMissing || (/"field"/.test(originals.get(name)!) && !/"field"/.test(result ?? ""));
          t.true(result === undefined || result === originals.get(name) || isAbsent, `${where}, ${name}: ${result}`);
        }
        for await (const { findings } of verifyAll({ database, genesis })) {
          findings.forEach(({ what, sentence }) => monitor.record(what, sentence));
        }
        counts[monitor.corruptItems().size > 0 ? "detected" : "undetected"]++;
        for (const [name, query] of queries) {
          const result = await resultOf(query);
          t.true(result === undefined || result === originals.get(name), `${where}, ${name}: ${result}`);
        }
      } finally {
        await database.close();
      }
    }
    t.log(counts);
    t.true(counts.detected > trials / 4, "the file holds more than empty space");
  },
);

test.serial(`with eight bytes changed, a node sends the original responses or errors (seed ${seed})`, async (t) => {
  const random = createRandom(seed + 1);
  const source = join(await temporaryDirectory(t), "source.sqlite");
  const stored = await storeChain(`sqlite:${source}`);
  const bytes = await readFile(source);
  const paths = pathsOf(stored);
  const start = async (file: string) => {
    const dir = await authorityDirectory(t, authority);
    const flags = { genesis: "genesis.json", database: `sqlite:${file}`, "metrics-enabled": true, "metrics-port": "0" };
    return await startTestNode(t, flags, dir);
  };
  const copy = join(await temporaryDirectory(t), "copy.sqlite");
  await copyFile(source, copy);
  const intact = await start(copy);
  const originals = new Map<string, string>();
  for (const path of paths) {
    originals.set(path, withoutSignedHead((await ask(intact.port, path)).text));
  }
  await intact.stop();
  for (let trial = 0; trial < nodeTrials; trial++) {
    const offset = Math.floor(random() * (bytes.length - 8));
    const file = await writeFlipped(t, bytes, offset, Buffer.alloc(8, 1 + Math.floor(random() * 255)));
    const node = await start(file).catch(() => undefined);
    if (node === undefined) {
      continue;
    }
    const metrics = node.subsystems.get("metrics").port!;
    const isVerified = async (): Promise<boolean> => {
      const { text } = await ask(metrics, "/metrics");
      const isFailed = (await ask(node.port, "/health")).status === 503;
      return isFailed || /verify_completed_seconds \d/.test(text);
    };
    await until(isVerified);
    for (const path of paths) {
      const { status, text } = await ask(node.port, path);
      const isExpected = status === 200 ? withoutSignedHead(text) === originals.get(path) : status >= 500;
      t.true(isExpected, `trial ${trial}, offset ${offset} of ${bytes.length}, ${path}: ${status} ${text}`);
    }
    await node.stop();
  }
});

/** Removes the signed head, which differs in each response. */
const withoutSignedHead = (text: string): string =>
  text.replace(/,"head":\{"statement":"[^"]+","signature":"[^"]+"\}/, "");
