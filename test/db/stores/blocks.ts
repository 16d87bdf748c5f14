import { toBinary } from "@bufbuild/protobuf";
import test from "ava";
import { BlockSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { createBlockChanges, createBlockStore, tryBlockWrite } from "../../../src/chain/blocks/block-store.js";
import { verifyTransaction, signBlock } from "../../../src/chain/transactions/transaction.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { createPublic, signTransaction, rulesOf } from "../../helpers/chain/transactions.js";
import { anyRoots } from "../../helpers/chain/seed.js";
import { testKey } from "../../helpers/chain/keys.js";
import type { StoreSuite } from "./suite.js";

const [authority, alice] = [testKey(1), testKey(2)];
const genesis = { text: '{"name":"a net", "n": 1.0}', hash: sha256("genesis"), timestampMs: 1_800_000_000_000 };
const transactions = Array.from({ length: 900 }, (_, i) =>
  verifyTransaction(signTransaction(alice, i + 1, createPublic(`p${i}`, "{}")), rulesOf()),
);
const block = signBlock(
  {
    number: 1n,
    previousHash: genesis.hash,
    timestampMs: 1_800_000_000_001n,
    proposer: authority.publicKey,
    genesisHash: genesis.hash,
    ...anyRoots,
  },
  transactions,
  (bytes) => authority.sign(bytes),
);

export const testBlocks: StoreSuite = (engine, open) => {
  test.serial(`${engine}: blocks: block 0 is stored once, and is the head until block 1 is stored`, async (t) => {
    const database = await open(t);
    const { read, write } = database;
    await tryBlockWrite(database);
    t.deepEqual(await read.rows((sql) => sql("transactions")), [], "a test write stores nothing");
    const [blocks, changes] = [createBlockStore(read), createBlockChanges(write)];
    t.is(await blocks.head(), undefined);
    t.is(await blocks.genesisText(), undefined);
    await changes.insertGenesis(genesis);
    t.is(await blocks.genesisText(), genesis.text);
    t.deepEqual(await blocks.head(), {
      number: 0n,
      hash: genesis.hash,
      timestampMs: 1_800_000_000_000n,
      genesisHash: genesis.hash,
      header: new Uint8Array(),
      signature: new Uint8Array(),
      lowestBlock: 1n,
    });
    t.is(await blocks.block(0n), undefined, "block 0 is not a signed block");
    t.is(await blocks.blockSize({ number: 0n }), undefined);
    t.is(await blocks.blockSize({ hash: genesis.hash }), undefined);
    await t.throwsAsync(changes.insertGenesis({ ...genesis, hash: sha256("another") }));
    t.is(await blocks.genesisText(), genesis.text);
  });

  test.serial(
    `${engine}: blocks: a stored block equals the signed block, with its transactions in order`,
    async (t) => {
      const { read, transaction } = await open(t);
      const blocks = createBlockStore(read);
      await transaction(async (db) => {
        const changes = createBlockChanges(db);
        await changes.insertGenesis(genesis);
        await changes.insertTransactions(transactions, 1n);
        await changes.insertBlock(block);
        t.is(await blocks.head(), undefined, "the block is visible before its commit");
      });
      const stored = await blocks.block(1n);
      t.is(stored?.hash, block.hash);
      t.deepEqual(toBinary(BlockSchema, stored!.block), toBinary(BlockSchema, block.signed));
      const { header, transactions: signed } = block.signed;
      const bytes = signed.reduce((sum, { body, signature }) => sum + body.length + signature.length, header.length);
      for (const by of [{ number: 1n }, { hash: block.hash }]) {
        t.deepEqual(await blocks.blockSize(by), { number: 1n, transactionCount: 900, bytes });
      }
      t.is(await blocks.blockSize({ number: 2n }), undefined);
      t.like(await blocks.head(), { number: 1n, hash: block.hash, genesisHash: genesis.hash });
      t.deepEqual(Buffer.from((await blocks.head())!.header), Buffer.from(block.signed.header));
      t.is(await blocks.block(2n), undefined);
      t.is(await blocks.blockOf(transactions[899]!.hash), 1n);
      t.is(await blocks.blockOf(genesis.hash), undefined);
      const hashes = transactions.map(({ hash }) => hash);
      const included = await createBlockChanges(read).included([...hashes, genesis.hash]);
      t.deepEqual([...included].toSorted(), hashes.toSorted());
    },
  );
};
