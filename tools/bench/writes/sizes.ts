/** Measures the disk space of a chain per transaction, block, program, leaf and nullifier, with both engines. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Chain } from "../../../src/chain/chain.js";
import type { Database } from "../../../src/db/queries/database.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { openDatabase } from "../../../src/db/open.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { toHex } from "../../../src/zk/poseidon.js";
import { openChain } from "../../../test/helpers/chain/chain.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { startPostgres } from "../../../test/helpers/databases/postgres-server.js";
import { commit, createPublic, signTransaction, signZk, spend } from "../../../test/helpers/chain/transactions.js";
import type { BenchSettings, Row } from "../row.js";

const [authority, alice] = [testKey(1), testKey(2)];

/** Repeated change whose growth is measured. */
interface Growth {
  readonly name: string;
  readonly count: number;
  /** Number of transactions in one block. */
  readonly inBlock: number;
  readonly transaction: (nonce: number) => Transaction;
}

const create = (name: string, json: (nonce: number) => string) => (nonce: number) =>
  signTransaction(alice, nonce, createPublic(`${name} ${nonce}`, json(nonce)));

const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`field ${i}`, `value ${i}`])));
/** Content that no engine compresses. */
const text = JSON.stringify({ text: randomBytes(75_000).toString("base64") });

/** Program whose field is set: the first one. */
const changed = programAddress(alice.publicKey, "first 1", 1n, "");

const setField = (nonce: number): Transaction =>
  signTransaction(alice, nonce, {
    case: "setField",
    value: { storageAddress: changed, field: "count", value: String(nonce) },
  });

const growths: readonly Growth[] = [
  { name: "transaction that sets a field", count: 2_000, inBlock: 500, transaction: setField },
  { name: "the same in a block of its own", count: 200, inBlock: 1, transaction: setField },
  {
    name: "program of 100 bytes",
    count: 2_000,
    inBlock: 500,
    transaction: create("small", (nonce) => JSON.stringify({ nonce, text: "x".repeat(80) })),
  },
  { name: `program of ${text.length} bytes of text`, count: 30, inBlock: 10, transaction: create("text", () => text) },
  {
    name: `program of 1,000 fields, ${wide.length} bytes`,
    count: 30,
    inBlock: 10,
    transaction: create("wide", () => wide),
  },
  {
    name: "leaf of the commitment tree",
    count: 1_200,
    inBlock: 400,
    transaction: (nonce) => signZk(alice, nonce, commit(toHex(BigInt(nonce) ** 9n))),
  },
  {
    name: "nullifier",
    count: 2_000,
    inBlock: 400,
    transaction: (nonce) => signZk(authority, nonce, spend(toHex(BigInt(nonce) ** 9n))),
  },
];

/** Fills a database, and measures it. */
export async function benchSizes({ directory, say }: BenchSettings): Promise<Row[]> {
  const postgres = await startPostgres();
  const bytes = new Map<string, Record<string, number>>();
  const note = typeof postgres === "string" ? `PostgreSQL does not start here: ${postgres}` : undefined;
  try {
    const urls = {
      SQLite: `sqlite:${join(directory, "sizes.sqlite")}`,
      ...(typeof postgres !== "string" && { PostgreSQL: await postgres.createDatabase() }),
    };
    for (const [engine, url] of Object.entries(urls)) {
      for (const [name, each] of await grow(url, (what) => say(`${engine}: ${what}`))) {
        bytes.set(name, { ...bytes.get(name), [`${engine} bytes`]: each });
      }
    }
  } finally {
    if (typeof postgres !== "string") {
      await postgres.remove();
    }
  }
  return [...bytes].map(([name, figures]) => ({ name, figures, ...(note !== undefined && { note }) }));
}

async function grow(url: string, say: (what: string) => void): Promise<Map<string, number>> {
  const database = await openDatabase(url);
  try {
    await migrate(database);
    const chain = await openChain(database, [authority]);
    await chain.submit(createFirst());
    await chain.produceBlock(authority);
    const bytes = new Map<string, number>();
    let nonce = 1;
    for (const growth of growths) {
      say(growth.name);
      const before = await sizeOf(database);
      nonce = await repeat(chain, growth, nonce);
      bytes.set(growth.name, ((await sizeOf(database)) - before) / growth.count);
    }
    return bytes;
  } finally {
    await database.close();
  }
}

const createFirst = (): Transaction => signTransaction(alice, 1, createPublic("first 1", '{"count": 0}'));

async function repeat(chain: Chain, { count, inBlock, transaction }: Growth, from: number): Promise<number> {
  let nonce = from;
  for (let done = 0; done < count; done += inBlock) {
    for (let i = 0; i < inBlock; i++) {
      await chain.submit(transaction(++nonce));
    }
    await chain.produceBlock(authority);
  }
  return nonce;
}

/** Returns the size of the chain's database in bytes; on PostgreSQL after VACUUM FULL. */
async function sizeOf({ read, write, files }: Database): Promise<number> {
  if (files === undefined) {
    await write.run((sql) => sql.raw("VACUUM FULL"));
  }
  const [row] = await read.rows<{ bytes: number }>((sql) =>
    sql.raw(
      files === undefined
        ? "SELECT pg_database_size(current_database()) AS bytes"
        : "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
    ),
  );
  return row!.bytes;
}
