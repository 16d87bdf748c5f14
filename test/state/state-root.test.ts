/** Compares state roots with a tree that is built from all stored rows, and verifies proofs under these roots. */
import { create } from "@bufbuild/protobuf";
import { runWithoutYielding } from "../../src/base/async/yielding.js";
import test, { type ExecutionContext } from "ava";
import { BlockHeaderSchema, type Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode, AccessPermission } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { fromHex32 } from "../../src/base/crypto/hash.js";
import type { VerifiedBlock } from "../../src/chain/transactions/transaction.js";
import { verifyTransaction, signBlock } from "../../src/chain/transactions/transaction.js";
import type { Database } from "../../src/db/queries/database.js";
import { createStateTreeChanges, createStateTreeStore, provenBlocks } from "../../src/state/state-tree-store.js";
import { fieldsOfObject, hashDocument, partsOf } from "../../src/storage/programs/program-state.js";
import { selectPrograms } from "../../src/storage/stores/program-state-store.js";
import { createProgramStore } from "../../src/storage/stores/program-store.js";
import type { ProgramRow } from "../../src/storage/programs/stored-program.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { buildTree } from "../../src/tree/change.js";
import { stateHashes, treeHashes } from "../../src/tree/node-hashes.js";
import { type Leaf, leadsTo } from "../../src/tree/path.js";
import { provePath } from "../../src/tree/prove.js";
import { createTreeStore } from "../../src/zk/tree-store.js";
import { toHex } from "../../src/zk/poseidon.js";
import { openChain } from "../helpers/chain/chain.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { testKey } from "../helpers/chain/keys.js";
import {
  commit,
  createPublic,
  type Operation,
  rulesOf,
  signTransaction,
  signZk,
  spend,
} from "../helpers/chain/transactions.js";

const engines = await prepareEngines();

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];
const large = `{${Array.from({ length: 900 }, (_, i) => `"name ${i}": "${"x".repeat(20)}"`).join(", ")}}`;

/** Reads all leaves of the state tree from the tables, by their definition. */
async function allLeaves({ read }: Database): Promise<Leaf[]> {
  const leaves: Leaf[] = [];
  const programs = createProgramStore(read);
  for (const row of await read.rows<ProgramRow>(selectPrograms)) {
    const { address } = row;
    const data = row.deleted ? undefined : (await programs.findWithData(address))!.data;
    leaves.push({
      key: stateHashes.programKey(address),
      valueHash: stateHashes.program({ ...partsOf(row), documentHash: documentHash(row.type, data) }),
    });
  }
  const senders = await read.rows<{ identity: string; nonce: number }>((sql) => sql("senders"));
  for (const { identity, nonce } of senders) {
    leaves.push({ key: stateHashes.senderKey(fromHex32(identity)), valueHash: stateHashes.sender(BigInt(nonce)) });
  }
  const nullifiers = await read.rows<{ hash: string; block_number: number; transaction_hash: string }>((sql) =>
    sql("nullifiers"),
  );
  for (const { hash, block_number, transaction_hash } of nullifiers) {
    leaves.push({
      key: stateHashes.nullifierKey(fromHex32(hash)),
      valueHash: stateHashes.nullifier(BigInt(block_number), fromHex32(transaction_hash)),
    });
  }
  const { root, leafCount } = await createTreeStore(read).root();
  return leafCount === 0
    ? leaves
    : [
        ...leaves,
        { key: stateHashes.commitmentsKey(), valueHash: stateHashes.commitments(fromHex32(root), leafCount) },
      ];
}

function documentHash(type: string, data: string | undefined): Uint8Array {
  if (data === undefined) {
    return hashDocument({ kind: "none" });
  }
  if (type !== "object") {
    return hashDocument({ kind: "text", text: data });
  }
  const { leaves, lastKey, tailHash } = runWithoutYielding(fieldsOfObject(data));
  return hashDocument({ kind: "object", fieldsRoot: runWithoutYielding(buildTree(leaves)).root, lastKey, tailHash });
}

const addressOf = (nonce: number): string => programAddress(alice.publicKey, "p", BigInt(nonce), "");
const address = addressOf(1);
const binary: Operation = {
  case: "createProgram",
  value: { programName: "p", data: { data: { case: "binary", value: new Uint8Array([0, 255]) } } },
};
const restricted: Operation = {
  case: "updateAccess",
  value: {
    storageAddress: address,
    access: {
      mode: AccessMode.RESTRICTED,
      allowed: [bob.publicKey],
      groups: { 2: { members: [bob.publicKey], permissions: [AccessPermission.READ] }, é: {}, 10: {} },
    },
  },
};

/** Transactions by block, with every kind of change of the state. */
const blocks: readonly (readonly Transaction[])[] = [
  [signTransaction(alice, 1, createPublic("p", '{"a": 1, "b": [1]}')), signZk(authority, 1, commit(toHex(5n)))],
  [signTransaction(alice, 2, createPublic("p", large)), signZk(authority, 2, spend(toHex(9n)))],
  [
    signTransaction(alice, 3, {
      case: "setField",
      value: { storageAddress: addressOf(2), field: "new", value: "1.0" },
    }),
    signTransaction(alice, 4, { case: "deleteField", value: { storageAddress: addressOf(2), field: "name 7" } }),
    signTransaction(alice, 5, { case: "appendItem", value: { storageAddress: address, field: "b", value: "2" } }),
  ],
  [signTransaction(alice, 6, binary), signTransaction(alice, 7, restricted)],
  [signTransaction(alice, 8, createPublic("p", "[1, 2]")), signTransaction(bob, 1, createPublic("q", "{}"))],
  [signTransaction(alice, 9, { case: "deleteProgram", value: { storageAddress: addressOf(2) } })],
  [signZk(authority, 3, commit(toHex(6n))), signZk(authority, 4, commit(toHex(7n)))],
];

for (const engine of engines.names) {
  test(`${engine}: each header has the root of all stored rows, and a follower computes the same root`, async (t) => {
    const [database, other] = [await engines.open(t, engine), await engines.open(t, engine)];
    const [chain, follower] = [await openChain(database, [authority]), await openChain(other, [authority])];
    const roots: string[] = [];
    for (const transactions of blocks) {
      for (const transaction of transactions) {
        await chain.submit(transaction);
      }
      const { block, rejected } = await chain.produceBlock(authority);
      t.is(rejected.size, 0);
      await checkRoot(t, database, block!);
      await follower.apply(block!.signed);
      roots.push(block!.header.stateRoot);
    }
    t.is(new Set(roots).size, blocks.length);
    t.deepEqual(
      await other.read.rows((sql) => sql("tree_pages").orderBy(["tree", "path"])),
      await database.read.rows((sql) => sql("tree_pages").orderBy(["tree", "path"])),
    );
  });

  test(`${engine}: a dry run returns the header of the block and stores nothing; a block with another root is rejected`, async (t) => {
    const database = await engines.open(t, engine);
    const chain = await openChain(database, [authority]);
    const [transactions] = blocks;
    const timeMs = BigInt(Date.now());
    const header = await chain.dryRun(transactions!, timeMs);
    t.deepEqual(await chain.dryRun(transactions!, timeMs), header);
    t.deepEqual(await database.read.rows((sql) => sql("tree_pages")), []);
    const read = transactions!.map((signed) => verifyTransaction(signed, rulesOf()));
    const sign = (roots: Partial<typeof header>) =>
      signBlock({ ...header, ...roots, proposer: authority.publicKey }, read, (bytes) => authority.sign(bytes)).signed;
    await t.throwsAsync(chain.apply(sign({ stateRoot: `0x${"0".repeat(64)}` })), {
      message: new RegExp(`^The block's state root is 0x0{64}, but this node computes ${header.stateRoot}\\.$`),
    });
    await t.throwsAsync(chain.apply(sign({ stateRoot: create(BlockHeaderSchema).stateRoot })), {
      message: /state_root/,
    });
    t.deepEqual(await database.read.rows((sql) => sql("tree_pages")), []);
    await chain.apply(sign({}));
    t.is(chain.head()!.number, 1n);
    await t.throwsAsync(chain.dryRun(transactions!, timeMs), { message: /in a block already|nonce/ });
    await t.throwsAsync(chain.dryRun([], 1n), { message: /time is before/ });
  });

  test(`${engine}: a transaction that rolls back does not change the root`, async (t) => {
    const chains = await Promise.all([0, 1].map(async () => openChain(await engines.open(t, engine), [authority])));
    const timeMs = Date.now() + 1_000;
    const good = signTransaction(alice, 1, createPublic("p", large));
    const wrong: Operation = {
      case: "setItem",
      value: { storageAddress: address, field: "name 1", index: 0, value: "1" },
    };
    const roots = [];
    for (const [i, chain] of chains.entries()) {
      await chain.submit(good);
      if (i === 1) {
        await chain.submit(signTransaction(alice, 2, wrong));
      }
      roots.push((await chain.produceBlock(authority, timeMs)).block!.header.stateRoot);
    }
    t.is(roots[0], roots[1]);
  });

  test(`${engine}: paths lead to the roots of the last ${provenBlocks} blocks`, async (t) => {
    const database = await engines.open(t, engine);
    const state = createStateTreeStore(database.read);
    const key = stateHashes.senderKey(fromHex32(alice.publicKey));
    const applied: { number: bigint; root: Uint8Array; valueHash: Uint8Array }[] = [];
    for (let number = 1n; number <= provenBlocks + 40; number++) {
      // Two of three blocks change this leaf, every block adds others, and pages are split meanwhile.
      const valueHash = number % 3n === 0n ? applied.at(-1)!.valueHash : stateHashes.sender(number);
      const others = Array.from({ length: 3 }, (_, i) => ({
        key: stateHashes.senderKey(Buffer.from(`${number} ${i}`)),
        valueHash: stateHashes.sender(number),
      }));
      const root = await database.transaction((db) =>
        createStateTreeChanges(db).change(number, [{ key, valueHash }, ...others]),
      );
      applied.push({ number, root, valueHash });
    }
    for (const { number, root, valueHash } of applied.slice(-provenBlocks)) {
      const proof = await provePath(state.pagesAfter(number), key);
      t.deepEqual(Buffer.from(proof.valueHash!), Buffer.from(valueHash));
      t.true(leadsTo(root, treeHashes, key, proof.valueHash, proof), String(number));
    }
    const { count } = (await database.read.first<{ count: number }>((sql) =>
      sql("tree_undo").countDistinct({ count: "block_number" }),
    ))!;
    t.true(count < provenBlocks + 16, "pages that no proof needs are still stored");
  });
}

async function checkRoot(t: ExecutionContext, database: Database, { header }: VerifiedBlock): Promise<void> {
  const leaves = await allLeaves(database);
  t.is(`0x${Buffer.from(runWithoutYielding(buildTree(leaves)).root).toString("hex")}`, header.stateRoot);
  const state = createStateTreeStore(database.read);
  for (const { key, valueHash } of leaves) {
    const proof = await provePath(state.pagesAfter(header.number), key);
    t.deepEqual(Buffer.from(proof.valueHash!), Buffer.from(valueHash));
    t.true(leadsTo(fromHex32(header.stateRoot), treeHashes, key, valueHash, proof));
  }
}
