/** Puts rows into a database as an applied block would, before a node opens it. */
import { createPublic, rulesOf, signTransaction } from "./transactions.js";
import { join } from "node:path";
import type { Transaction, TransactionBody } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { fromHex32, sha256, toHex32 } from "../../../src/base/crypto/hash.js";
import { type BlockChanges, createBlockChanges } from "../../../src/chain/blocks/block-store.js";
import { signBlock, type VerifiedTransaction, verifyTransaction } from "../../../src/chain/transactions/transaction.js";
import type { Database, Queries } from "../../../src/db/queries/database.js";
import { openDatabase } from "../../../src/db/open.js";
import { hashDocumentRow, hashFieldRow, hashProgramEntry, hashProgramRest } from "../../../src/db/rows/row-hashes.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { createStateTreeChanges } from "../../../src/state/state-tree-store.js";
import { readLeaves } from "../../../src/storage/stores/program-state-store.js";
import { addProgramTables } from "../../../src/storage/stores/program-tables-store.js";
import { createWriteBuffer } from "../../../src/db/rows/write-buffer.js";
import { type AccessRule, namedReaders } from "../../../src/storage/programs/access.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import type { LeafChange } from "../../../src/tree/change.js";
import { senderLeaf } from "../../../src/tree/state-leaves.js";
import { appendLeaves, createTreeChanges } from "../../../src/zk/tree-store.js";
import { inlinePool, openChain } from "./chain.js";
import { genesisOf, type TestKey } from "./keys.js";

/** What a header may say of the state where nobody compares it. */
export const anyRoots = { stateRoot: `0x${"1".repeat(64)}`, commitmentRoot: undefined };

/** Opens the database of a node's directory, which no node uses yet, and closes it afterwards. */
export async function seedDatabase(dir: string, fill: (database: Database) => Promise<void>): Promise<void> {
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  try {
    await migrate(database);
    await fill(database);
  } finally {
    await database.close();
  }
}

/** Settings of inserted blocks. */
interface InsertedBlocks {
  /** Blocks that one database transaction inserts. Default: 1. */
  readonly perCommit?: number;
  /** Returns the time of a block. Default: the same time for all. */
  readonly timestampMsOf?: (number: bigint) => bigint;
}

/**
 * Stores a genesis and these blocks as if they had been applied, but of their effects only the programs that they make,
 * public and empty, and the nonces of their senders: what reads blocks sees them.
 */
export async function insertBlocks(
  database: Database,
  authority: TestKey,
  blocks: Iterable<readonly Transaction[]>,
  { perCommit = 1, timestampMsOf = () => 1_700_000_000_000n }: InsertedBlocks = {},
): Promise<void> {
  const text = genesisOf(authority);
  const genesisHash = sha256(text);
  await createBlockChanges(database.write).insertGenesis({ text, hash: genesisHash, timestampMs: 0 });
  let before = { number: 0n, hash: genesisHash };
  let stateRoot: string | undefined;

  async function insertBlock(db: Queries, changes: BlockChanges, signed: readonly Transaction[]): Promise<void> {
    const number = before.number + 1n;
    const transactions = signed.map((one) => verifyTransaction(one, rulesOf(genesisHash)));
    if (stateRoot === undefined || transactions.length > 0) {
      stateRoot = toHex32(await insertEffects(db, number, transactions));
      await changes.insertTransactions(transactions, number);
    }
    const header = { number, previousHash: before.hash, timestampMs: timestampMsOf(number), stateRoot };
    const rest = { proposer: authority.publicKey, genesisHash, commitmentRoot: undefined };
    const block = signBlock({ ...header, ...rest }, transactions, (bytes) => authority.sign(bytes));
    await changes.insertBlock(block);
    before = { number, hash: block.hash };
  }

  const remaining = blocks[Symbol.iterator]();
  for (let next = remaining.next(); !next.done;) {
    await database.transaction(async (db) => {
      const changes = createBlockChanges(db);
      for (let i = 0; i < perCommit && !next.done; i++, next = remaining.next()) {
        await insertBlock(db, changes, next.value);
      }
    });
  }
}

/** Stores the programs that transactions make, and puts them and the senders into the state tree. Returns its root. */
async function insertEffects(
  db: Queries,
  number: bigint,
  transactions: readonly VerifiedTransaction[],
): Promise<Uint8Array> {
  const made: string[] = [];
  for (const { body } of transactions) {
    made.push(...(await insertMadeProgram(db, body)));
  }
  const nonces = new Map(transactions.map(({ body }) => [body.sender, body.nonce]));
  const senders = [...nonces].map(([sender, nonce]) => senderLeaf({ publicKey: fromHex32(sender), nonce }));
  return await createStateTreeChanges(db).change(number, [...(await programLeaves(db, made)), ...senders]);
}

/** Gives the address of what a transaction makes. */
async function insertMadeProgram(write: Queries, body: TransactionBody): Promise<string[]> {
  const operation = body.operation.case === "storage" ? body.operation.value.operation : undefined;
  if (operation?.case !== "createProgram") {
    return [];
  }
  const { programName: name, salt } = operation.value;
  const address = programAddress(body.sender, name, body.nonce, salt);
  const createdMs = Number(body.timestampMs);
  await insertProgram({ write }, { address, owner: body.sender, name, mode: "public", type: "null", createdMs });
  return [address];
}

/** A program to store. */
export interface SeedProgram {
  readonly address: string;
  readonly owner: string;
  readonly name: string;
  readonly mode: "public" | "owner" | "restricted";
  readonly type: string;
  /** Text of the document; none for a program that holds nothing. */
  readonly data?: string;
  /** Fields of the document in its order: name, type, text. */
  readonly fields?: readonly (readonly [name: string, type: string, value: string])[];
  readonly access?: Partial<Pick<AccessRule, "allowed" | "blacklisted" | "groups">>;
  readonly metadata?: string;
  readonly createdMs: number;
  readonly deleted?: boolean;
}

/** Stores a program with its document, fields and readers. */
export async function insertProgram({ write }: Pick<Database, "write">, program: SeedProgram): Promise<void> {
  const { address, data, fields = [] } = program;
  const access = { allowed: [], blacklisted: [], groups: {}, ...program.access };
  const row = {
    address,
    owner: program.owner,
    name: program.name,
    encoding: program.type === "binary" ? "binary" : "json",
    type: program.type,
    mode: program.mode,
    access: JSON.stringify(access),
    metadata: program.metadata ?? null,
    size_bytes: Buffer.byteLength(data ?? ""),
    created_ms: program.createdMs,
    updated_ms: program.createdMs + 1000,
    deleted: program.deleted ?? false,
    in_parts: false,
    blinding: "0".repeat(64),
  };
  const hashes = { entry_hash: hashProgramEntry(row), rest_hash: hashProgramRest(row) };
  await write.run((sql) => sql("programs").insert({ ...row, ...hashes, name_folded: program.name.toLowerCase() }));
  if (data !== undefined) {
    const document = { address, data };
    await write.run((sql) => sql("program_documents").insert({ ...document, row_hash: hashDocumentRow(document) }));
  }
  for (const [position, [name, type, value]] of fields.entries()) {
    const key = { address, name_json: JSON.stringify(name), position };
    const field = { ...key, type, value, items: null, size_bytes: 0, text_before: "" };
    await write.run((sql) => sql("program_fields").insert({ ...field, row_hash: hashFieldRow(field) }));
  }
  for (const [identity, isAllowed] of namedReaders({ owner: program.owner, mode: program.mode, ...access })) {
    await write.run((sql) => sql("program_readers").insert({ address, identity, allowed: isAllowed }));
  }
}

/**
 * Names what was inserted in the header of a block, which makes one program more: a node that starts with
 * `genesisOf(authority)` walks over what it has stored, and finds it right. Nodes without a genesis do not walk.
 */
export async function nameInHeader(database: Database, authority: TestKey): Promise<void> {
  await insertProgramLeaves(database);
  const chain = await openChain(database, [authority]);
  const network = sha256(genesisOf(authority));
  await chain.submit(signTransaction(authority, 1, createPublic("seeded", "null"), { network }));
  await chain.produceBlock(authority);
}

/** Puts all stored programs into the state tree, as if blocks had made them. */
export async function insertProgramLeaves(database: Database): Promise<void> {
  const rows = await database.read.rows<{ address: string }>((sql) => sql("programs").select("address"));
  await database.transaction(async (db) => {
    const addresses = rows.map(({ address }) => address);
    await createStateTreeChanges(db).change(0n, await programLeaves(db, addresses));
  });
}

/** The leaves of programs that were not in the state tree before. */
async function programLeaves(db: Queries, addresses: readonly string[]): Promise<LeafChange[]> {
  const whole = { isComplete: true, hadTree: false, text: undefined, fields: new Set<string>() };
  const touched = new Map(addresses.map((address) => [address, whole]));
  return await readLeaves(db, addProgramTables(createWriteBuffer(db)), touched);
}

/** Adds leaves to the tree, as a block would. */
export async function insertLeaves(
  database: Database,
  leaves: readonly bigint[],
  blockNumber: number,
  timeMs = 0,
): Promise<void> {
  const { foldAll } = inlinePool;
  const block = { number: BigInt(blockNumber), timeMs };
  await database.transaction((db) => appendLeaves(createTreeChanges(db), { leaves, block, foldAll }));
}
