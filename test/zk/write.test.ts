/** Commitments and nullifiers in blocks. */
import { IMT } from "@zk-kit/imt";
import test from "ava";
import { poseidon2 } from "poseidon-lite/poseidon2";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { createChainStore } from "../../src/chain/chain-store.js";
import { stateIn } from "../../src/node/chain/transaction-executor.js";
import { verifyTransaction, signBlock } from "../../src/chain/transactions/transaction.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import type { RpcError } from "../../src/rpc/errors.js";
import { parseVerificationKey, type VerificationKey } from "../../src/zk/groth16.js";
import { maxLeaves } from "../../src/zk/merkle-tree.js";
import { createTreeStore } from "../../src/zk/tree-store.js";
import { createNullifierStore } from "../../src/zk/nullifier-store.js";
import { fieldOrder, toHex } from "../../src/zk/poseidon.js";
import { commit, signZk, spend, type ZkChange, rulesOf } from "../helpers/chain/transactions.js";
import { fillRowHashes } from "../helpers/databases/fill-row-hashes.js";
import { openChain } from "../helpers/chain/chain.js";
import { testKey } from "../helpers/chain/keys.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import { proveAnything, verificationKeyJson } from "../helpers/chain/groth16.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const engines = await prepareEngines();

const [authority, alice, bob] = [testKey(1), testKey(2), testKey(3)];
const nullifier = toHex(77n);

async function open(t: Teardown, engine: Engine, verificationKey?: VerificationKey) {
  const database = await engines.open(t, engine);
  const chain = await openChain(database, [authority], { verificationKey });
  const store = createChainStore(database, stateIn);
  let nonce = 0;
  const sign = (change: ZkChange, key = alice): Transaction => signZk(key, ++nonce, change);
  return {
    database,
    chain,
    store,
    sign,
    tree: createTreeStore(database.read),
    nullifiers: createNullifierStore(database.read),
    /** Submits a transaction, and returns the reason and message of its rejection. */
    rejectionOf: async (change: ZkChange, key = alice): Promise<readonly [reason: string, message: string]> => {
      try {
        await chain.submit(sign(change, key));
        return ["accepted", ""];
      } catch (error) {
        return [(error as RpcError).reason, (error as RpcError).message];
      }
    },
  };
}

const key = parseVerificationKey(verificationKeyJson);

for (const engine of engines.names) {
  test(`${engine}: commitments of a block become leaves in order, and its header has the root`, async (t) => {
    const { chain, sign, tree, rejectionOf } = await open(t, engine);
    const other = new IMT(poseidon2, 20, 0n, 2);
    for (const batch of [[5n], [6n, 1n, fieldOrder - 1n], [9n]]) {
      for (const leaf of batch) {
        await chain.submit(sign(commit(toHex(leaf))));
        other.insert(leaf);
      }
      const { block } = await chain.produceBlock(authority);
      t.is(block!.header.commitmentRoot, toHex(other.root as bigint));
      t.like(await tree.root(), { root: block!.header.commitmentRoot, blockNumber: block!.header.number });
    }
    t.like(await tree.path(toHex(1n), undefined), { leafIndex: 2 });

    t.deepEqual(await rejectionOf(commit(toHex(6n))), ["ALREADY_EXISTS", "The commitment is in the tree already."]);
    t.is((await rejectionOf(commit(toHex(0n))))[0], "INVALID_REQUEST");
    t.is((await rejectionOf(commit(toHex(fieldOrder))))[0], "INVALID_REQUEST");
    t.is((await rejectionOf(commit("0x12")))[0], "INVALID_REQUEST");
    t.is((await rejectionOf(commit(toHex(0xabn).toUpperCase().replace("0X", "0x"))))[0], "INVALID_REQUEST");
  });

  test(`${engine}: one of two equal commitments is included`, async (t) => {
    const { chain, store, sign, tree } = await open(t, engine);
    const hashes = [await chain.submit(sign(commit(toHex(5n)))), await chain.submit(sign(commit(toHex(5n)), bob))];
    const { block } = await chain.produceBlock(authority);
    t.is(block!.transactions.length, 1);
    t.is((await tree.root()).leafCount, 1);
    const statuses = await Promise.all(hashes.map((hash) => store.transactionStatus(hash)));
    t.deepEqual(statuses.map((found) => found!.status).sort(), ["included", "rejected"]);
    t.like(
      statuses.find((found) => found!.status === "rejected"),
      { reason: "The commitment is in the tree already." },
    );
  });

  test(`${engine}: rejects a block with a wrong root, and changes nothing`, async (t) => {
    const { chain, sign, tree } = await open(t, engine);
    const before = chain.head()!;
    const createBlock = async (commitmentRoot: string | undefined, transactions: Transaction[]) =>
      signBlock(
        {
          ...(await chain.dryRun(transactions, before.timestampMs + 1n)),
          proposer: authority.publicKey,
          commitmentRoot,
        },
        transactions.map((transaction) => verifyTransaction(transaction, rulesOf())),
        (bytes) => authority.sign(bytes),
      ).signed;
    const transaction = sign(commit(toHex(5n)));
    const right = new IMT(poseidon2, 20, 0n, 2, [5n]).root as bigint;
    for (const wrong of [undefined, toHex(right + 1n)]) {
      await t.throwsAsync(chain.apply(await createBlock(wrong, [transaction])), {
        message: /The block's commitment root is/,
      });
      t.is((await tree.root()).leafCount, 0);
    }
    const spending = signZk(authority, 1, spend(nullifier));
    await t.throwsAsync(chain.apply(await createBlock(toHex(right), [spending])), {
      message: /this node computes no change/,
    });
    await chain.apply(await createBlock(toHex(right), [transaction]));
    t.like(await tree.root(), { root: toHex(right), leafCount: 1, blockNumber: 1n });
  });

  test(`${engine}: a full tree rejects commitments permanently`, async (t) => {
    const { chain, store, sign, rejectionOf, database } = await open(t, engine);
    const late = await chain.submit(sign(commit(toHex(5n))));
    await database.write.run((sql) => sql("merkle_roots").update({ leaf_count: maxLeaves }));
    await fillRowHashes(database.write);
    t.is((await chain.produceBlock(authority)).block, undefined);
    const reason = "The commitment tree is full: it has 1048576 leaves.";
    t.deepEqual(await store.transactionStatus(late), { status: "rejected", reason });
    t.deepEqual(await rejectionOf(commit(toHex(6n))), ["INVALID_REQUEST", reason]);
  });

  test(`${engine}: without a verification key, only an authority may spend a nullifier, once`, async (t) => {
    const { chain, store, sign, nullifiers, rejectionOf } = await open(t, engine);
    t.is((await rejectionOf(spend(nullifier)))[0], "PERMISSION_DENIED");
    const twice = [
      await chain.submit(sign(spend(nullifier), authority)),
      await chain.submit(sign(spend(nullifier), authority)),
    ];
    await chain.produceBlock(authority);
    t.deepEqual(await Promise.all(twice.map((hash) => store.transactionStatus(hash))), [
      { status: "included", blockNumber: 1n },
      { status: "rejected", reason: "The nullifier is spent already, in block 1." },
    ]);
    t.deepEqual((await nullifiers.find(nullifier)).use, { blockNumber: 1n, transactionHash: twice[0] });
    t.deepEqual(await rejectionOf(spend(nullifier), authority), [
      "ALREADY_EXISTS",
      "The nullifier is spent already, in block 1.",
    ]);
    t.is((await nullifiers.find(toHex(78n))).use, undefined);
  });

  test(`${engine}: with a verification key, a valid proof may come from any sender`, async (t) => {
    const { chain, sign, tree, nullifiers, rejectionOf } = await open(t, engine, key);
    await chain.submit(sign(commit(toHex(5n))));
    await chain.produceBlock(authority);
    const { root } = await tree.root();
    const proof = proveAnything([BigInt(nullifier), BigInt(root)]);
    const spending = (more: object): ZkChange => ({
      case: "spendNullifier",
      value: { nullifierHash: nullifier, root, proof, ...more },
    });
    t.is((await rejectionOf(spending({ proof: undefined }), authority))[0], "INVALID_PROOF");
    t.is((await rejectionOf(spending({ nullifierHash: toHex(78n) })))[0], "INVALID_PROOF");
    t.is((await rejectionOf(spending({ proof: { ...proof, c: proof.a } })))[0], "INVALID_PROOF");
    t.regex(
      (await rejectionOf(spending({ root: toHex(1n) })))[1],
      /current neither after one of the last 256 blocks nor within the last 10 minutes/,
    );
    t.is((await rejectionOf(spending({ nullifierHash: toHex(fieldOrder) })))[0], "INVALID_REQUEST");
    t.is((await rejectionOf(spending({ root: "0x1" })))[0], "INVALID_REQUEST");

    // A new leaf changes the root, but the proof for the previous root stays valid.
    await chain.submit(sign(commit(toHex(6n))));
    await chain.produceBlock(authority);
    await chain.submit(sign(spending({}), bob));
    await chain.produceBlock(authority);
    t.like((await nullifiers.find(nullifier)).use, { blockNumber: 3n });
    t.is((await rejectionOf(spending({})))[0], "ALREADY_EXISTS");
  });
}
