/** Rows that are changed together with their checksums: the state root in the block headers reveals them. */
import test from "ava";
import { createBlockStore } from "../../../src/chain/blocks/block-store.js";
import { type Genesis, readStoredGenesis } from "../../../src/chain/blocks/genesis.js";
import type { Database, Queries } from "../../../src/db/queries/database.js";
import type { Engine } from "../../../src/db/queries/dialects.js";
import { openDatabase } from "../../../src/db/open.js";
import {
  hashChunkRow,
  hashDocumentRow,
  hashFieldRow,
  hashNullifierRow,
  hashProgramRest,
  hashSenderRow,
} from "../../../src/db/rows/row-hashes.js";
import { verifyAll } from "../../../src/node/data/verify-data.js";
import { openChain } from "../../helpers/chain/chain.js";
import { prepareEngines } from "../../helpers/databases/databases.js";
import { alice, authority, type StoredChain, storeChain } from "../../helpers/chain/stored-chain.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { signTransaction } from "../../helpers/chain/transactions.js";

const engines = await prepareEngines();

/** A change of rows with matching checksums. */
interface Forgery {
  readonly title: string;
  readonly forge: (db: Queries, stored: StoredChain) => Promise<unknown>;
  readonly message: (stored: StoredChain) => string;
}

async function forgeRow<Row extends object>(
  db: Queries,
  table: string,
  where: object,
  change: (row: Row) => Partial<Row>,
  hash: (row: Row) => string,
  column = "row_hash",
): Promise<void> {
  const row = (await db.first<Row>((sql) => sql(table).where(where).orderBy(1)))!;
  const changed = change(row);
  const forged = { ...changed, [column]: hash({ ...row, ...changed }) };
  await db.run((sql) => sql(table).where(row).update(forged));
}

const ofBlock4 = "does not match the state root of block 4.";
const programMessage = (address: string): string => `The stored data of the storage program ${address} ${ofBlock4}`;

const forgeries: readonly Forgery[] = [
  {
    title: "a document and its fields",
    async forge(db, { small: address }) {
      await forgeRow<{ address: string; data: string }>(
        ...([db, "program_documents", { address }] as const),
        ({ data }) => ({ data: data.replace("1, 2, 3", "1, 2, 4") }),
        hashDocumentRow,
      );
      await forgeRow<Parameters<typeof hashFieldRow>[0]>(
        ...([db, "program_fields", { address, name_json: '"items"' }] as const),
        ({ value }) => ({ value: value.replace("1, 2, 3", "1, 2, 4") }),
        hashFieldRow,
      );
    },
    message: ({ small }) => programMessage(small),
  },
  {
    title: "an item of a large document",
    forge: (db, { large: address }) =>
      forgeRow<Parameters<typeof hashChunkRow>[0]>(
        ...([db, "program_chunks", { address }] as const),
        ({ text }) => ({ text: text.replaceAll("words", "birds").replaceAll("100001", "999999") }),
        hashChunkRow,
      ),
    message: ({ large }) => `The storage program ${large} in the database is corrupt`,
  },
  {
    title: "the metadata of a program",
    forge: (db, { empty: address }) =>
      forgeRow<Parameters<typeof hashProgramRest>[0]>(
        ...([db, "programs", { address }] as const),
        () => ({ metadata: '"other"' }),
        hashProgramRest,
        "rest_hash",
      ),
    message: ({ empty }) => programMessage(empty),
  },
  {
    title: "the last nonce of a sender",
    forge: (db) =>
      forgeRow<Parameters<typeof hashSenderRow>[0]>(
        ...([db, "senders", { identity: alice.publicKey }] as const),
        ({ nonce }) => ({ nonce: nonce + 1 }),
        hashSenderRow,
      ),
    message: () => `The stored data of the sender ${alice.publicKey} ${ofBlock4}`,
  },
  {
    title: "a nullifier whose transaction is not stored",
    async forge(db, { nullifier }) {
      // After a snapshot sync, the transactions are not stored.
      await db.run((sql) => sql("transactions").delete());
      await db.run((sql) => sql("block_bounds").update({ lowest_block: 5 }));
      await forgeRow<Parameters<typeof hashNullifierRow>[0]>(
        ...([db, "nullifiers", { hash: nullifier }] as const),
        () => ({ block_number: 3 }),
        hashNullifierRow,
      );
    },
    message: ({ nullifier }) => `The stored data of the nullifier ${nullifier} ${ofBlock4}`,
  },
];

const genesisIn = async ({ read }: Database) => (await readStoredGenesis(createBlockStore(read)))!;

async function findingsIn(database: Database, known?: Genesis): Promise<string[]> {
  const genesis = known ?? (await genesisIn(database));
  const messages: string[] = [];
  for await (const { findings } of verifyAll({ database, genesis })) {
    messages.push(...findings.map(({ sentence }) => sentence));
  }
  return messages;
}

async function openStored(t: Teardown, engine: Engine) {
  const url = await engines.createUrl(t, engine);
  const stored = await storeChain(url);
  const database = await openDatabase(url);
  t.teardown(() => database.close());
  return { stored, database };
}

for (const engine of engines.names) {
  test(`${engine}: reports each forged row, and nothing else`, async (t) => {
    const { stored, database } = await openStored(t, engine);
    t.deepEqual(await findingsIn(database), []);
    const expected: string[] = [];
    for (const { title, forge, message } of forgeries) {
      await forge(database.write, stored);
      expected.push(message(stored));
      const found = await findingsIn(database);
      t.true(
        expected.every((start) => found.some((finding) => finding.startsWith(start))),
        `${title}: ${found.join("\n")}`,
      );
      t.is(found.length, expected.length, `${title}: ${found.join("\n")}`);
    }
  });

  test(`${engine}: reports a missing genesis block`, async (t) => {
    const { database } = await openStored(t, engine);
    const genesis = await genesisIn(database);
    await database.write.run((sql) => sql("blocks").where("number", 0).delete());
    t.deepEqual(await findingsIn(database, genesis), [
      "Block 0 in the database does not have the hash of the genesis that it holds.",
    ]);
  });

  test(`${engine}: reports nothing for blocks that are applied during the check`, async (t) => {
    const { stored, database } = await openStored(t, engine);
    const chain = await openChain(database, [authority]);
    const last = (await chainNonce(database)) + 1;
    const finished = new AbortController();
    const changes = (async () => {
      for (let i = 0; i < 60; i++) {
        const storageAddress = i % 2 === 0 ? stored.small : stored.large;
        const value = { storageAddress, field: "title", value: `"${i}"` };
        await chain.submit(signTransaction(alice, last + i, { case: "setField", value }));
        await chain.produceBlock(authority);
      }
      finished.abort();
    })();
    let rounds = 0;
    for (; !finished.signal.aborted; rounds++) {
      t.deepEqual(await findingsIn(database), []);
    }
    await changes;
    t.true(rounds > 0);
    t.deepEqual(await findingsIn(database), []);
  });
}

async function chainNonce({ read }: Database): Promise<number> {
  const row = await read.first<{ nonce: number }>((sql) => sql("senders").where({ identity: alice.publicKey }));
  return row!.nonce;
}
