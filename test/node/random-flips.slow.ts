/** Eight bytes anywhere in the file of a database: no answer is another one than before. */
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
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { alice, authority, pathsOf, type StoredChain, storeChain } from "../helpers/chain/stored-chain.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const seed = Number(process.env["SEED"] ?? 20_261_122);
const trials = 100;
const nodeTrials = 6;

const page = { limit: 50, offset: 0 };

/** Everything that the stores answer, by what is asked. */
function questions(
  database: Database,
  damage: CorruptionMonitor,
  stored: StoredChain,
): Map<string, () => Promise<unknown>> {
  const store = monitorStore(createChainStore(database, stateIn), damage);
  const programs = monitorPrograms(createProgramStore(database.read), damage);
  const tree = monitorTree(createTreeStore(database.read), damage);
  const nullifiers = monitorNullifiers(createNullifierStore(database.read), damage);
  const { blocks, blockHashes, transactions, small, large, empty, commitments, nullifier } = stored;
  const asked = new Map<string, () => Promise<unknown>>();
  for (let number = 1n; number <= blocks; number++) {
    asked.set(`block ${number}`, () => store.block(number));
  }
  // How large it is decides on the size of an answer alone.
  blockHashes.forEach((hash) => asked.set(`block ${hash}`, async () => (await store.blockSize({ hash }))?.number));
  transactions.forEach((hash) => asked.set(`transaction ${hash}`, () => store.transactionStatus(hash)));
  asked.set("head", () => store.head());
  asked.set("nonce", () => store.lastNonce(alice.publicKey));
  for (const address of [small, large, empty]) {
    asked.set(`program ${address}`, () => programs.findWithData(address));
    asked.set(`names of ${address}`, () => programs.findWithFieldNames(address));
  }
  for (const name of ["title", "more", "items"]) {
    asked.set(`field ${name}`, () => programs.findWithField(small, name));
  }
  for (const name of ["title", "text", "list", "end"]) {
    asked.set(`large field ${name}`, () => programs.findWithField(large, name));
  }
  for (const index of [0, 3_000, 6_000]) {
    asked.set(`item ${index}`, () => programs.findWithItem(large, "list", index));
  }
  asked.set("list", () => programs.listByOwner(alice.publicKey, undefined, page));
  asked.set("search", () => programs.search("one", false, undefined, page));
  asked.set("root", async () => await tree.root());
  for (const commitment of commitments) {
    asked.set(`path ${commitment}`, async () => await tree.path(commitment, undefined));
  }
  asked.set("nullifier", async () => await nullifiers.find(nullifier));
  return asked;
}

const toText = (value: unknown): string =>
  value === undefined
    ? "nothing"
    : JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? `${one}n` : one));

/** What is answered; undefined for an error, which tells of no wrong query. */
async function answer(question: () => Promise<unknown>): Promise<string | undefined> {
  try {
    return toText(await question());
  } catch (error) {
    if (isDatabaseError(error)) {
      return undefined;
    }
    throw error;
  }
}

async function flipped(t: Teardown, bytes: Buffer, offset: number, mask: Buffer): Promise<string> {
  const file = join(await temporaryDirectory(t), "flipped.sqlite");
  const damaged = Buffer.from(bytes);
  for (let i = 0; i < mask.length; i++) {
    damaged[offset + i]! ^= mask[i]!;
  }
  await writeFile(file, damaged);
  return file;
}

test.serial(
  `eight bytes in ${trials} places of a file (seed ${seed}): every answer is the one from before, or an error`,
  async (t) => {
    const random = createRandom(seed);
    const source = join(await temporaryDirectory(t), "source.sqlite");
    const stored = await storeChain(`sqlite:${source}`);
    const bytes = await readFile(source);
    const mempool = await readFile(`${source}-mempool`);
    const right = new Map<string, string>();
    const whole = await openDatabase(`sqlite:${source}`);
    const unharmed = createCorruptionMonitor(() => undefined);
    for (const [name, question] of questions(whole, unharmed, stored)) {
      right.set(name, (await answer(question))!);
    }
    const genesis = (await readStoredGenesis(createChainStore(whole, stateIn)))!;
    await whole.close();
    const outcome = { refused: 0, found: 0, unseen: 0 };

    for (let trial = 0; trial < trials; trial++) {
      const offset = Math.floor(random() * (bytes.length - 8));
      const mask = Buffer.from(Array.from({ length: 8 }, () => 1 + Math.floor(random() * 255)));
      const file = await flipped(t, bytes, offset, mask);
      await writeFile(`${file}-mempool`, mempool);
      const where = `trial ${trial}, offset ${offset} of ${bytes.length}`;
      let database: Database;
      try {
        database = await openDatabase(`sqlite:${file}`);
      } catch {
        outcome.refused++;
        continue;
      }
      try {
        const damage = createCorruptionMonitor(() => undefined);
        const asked = questions(database, damage, stored);
        // At once: what is given is right. That nothing was found may be wrong until everything was looked at.
        for (const [name, question] of asked) {
          const given = await answer(question).catch((error: unknown) => `${where}, ${name}: ${String(error)}`);
          const isMissing =
            name === "list" || name === "search" || /^nothing$|"missing"|^\{"hash":"0x\w+"\}$/.test(given ?? "");
          const isAbsent = isMissing || (/"field"/.test(right.get(name)!) && !/"field"/.test(given ?? ""));
          t.true(given === undefined || given === right.get(name) || isAbsent, `${where}, ${name}: ${given}`);
        }
        for await (const { findings } of verifyAll({ database, genesis })) {
          findings.forEach(({ what, sentence }) => damage.record(what, sentence));
        }
        outcome[damage.corruptItems().size > 0 ? "found" : "unseen"]++;
        for (const [name, question] of asked) {
          const given = await answer(question);
          t.true(given === undefined || given === right.get(name), `${where}, ${name}: ${given}`);
        }
      } finally {
        await database.close();
      }
    }
    t.log(outcome);
    t.true(outcome.found > trials / 4, "the file holds more than empty space");
  },
);

test.serial(`a node over such a file gives no other answer than before (seed ${seed})`, async (t) => {
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
  const well = await start(copy);
  const right = new Map<string, string>();
  for (const path of paths) {
    right.set(path, withoutWord((await ask(well.port, path)).text));
  }
  await well.stop();
  for (let trial = 0; trial < nodeTrials; trial++) {
    const offset = Math.floor(random() * (bytes.length - 8));
    const file = await flipped(t, bytes, offset, Buffer.alloc(8, 1 + Math.floor(random() * 255)));
    const node = await start(file).catch(() => undefined);
    if (node === undefined) {
      continue;
    }
    const metrics = node.subsystems.get("metrics").port!;
    const isLookedAt = async (): Promise<boolean> => {
      const { text } = await ask(metrics, "/metrics");
      const isFailed = (await ask(node.port, "/health")).status === 503;
      return isFailed || /verify_completed_seconds \d/.test(text);
    };
    await until(isLookedAt);
    for (const path of paths) {
      const { status, text } = await ask(node.port, path);
      const isRight = status === 200 ? withoutWord(text) === right.get(path) : status >= 500;
      t.true(isRight, `trial ${trial}, offset ${offset} of ${bytes.length}, ${path}: ${status} ${text}`);
    }
    await node.stop();
  }
});

/** Without the authority's word of its head, which is another one each time. */
const withoutWord = (text: string): string => text.replace(/,"head":\{"statement":"[^"]+","signature":"[^"]+"\}/, "");
