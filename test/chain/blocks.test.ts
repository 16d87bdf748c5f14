import { blockMessage, transactionMessage, decodeBlock } from "../../src/chain/transactions/transaction.js";
import { create, toBinary } from "@bufbuild/protobuf";
import test from "ava";
import { type Block, BlockHeaderSchema, BlockSchema, type Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { Chain } from "../../src/chain/chain.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import type { Engine } from "../../src/db/queries/dialects.js";
import { RpcError } from "../../src/rpc/errors.js";
import { createPublic, type Operation, signTransaction, type SigningOptions } from "../helpers/chain/transactions.js";
import { openParts } from "../helpers/chain/chain.js";
import { type TestKey, testKey } from "../helpers/chain/keys.js";
import { prepareEngines } from "../helpers/databases/databases.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

const [authority, second, alice, bob] = [testKey(1), testKey(2), testKey(3), testKey(4)];
const now = 1_800_000_000_000;

/** Address without a program. */
const unusedAddress = `stor-${"0".repeat(40)}`;

const sign = (key: TestKey, nonce: number, operation: Operation, options: SigningOptions = {}): Transaction =>
  signTransaction(key, nonce, operation, { expiresMs: now + 600_000, ...options });

const engines = await prepareEngines();

async function open(t: Teardown, engine: Engine, authorities: readonly TestKey[] = [authority]) {
  const database = await engines.open(t, engine);
  return { database, ...(await openParts(database, authorities, { nowMs: () => now })) };
}

const reasonOf = (error: Error | undefined): string | undefined =>
  error instanceof RpcError ? error.reason : undefined;

for (const engine of engines.names) {
  test(`${engine}: a transaction is pending, then included; submitting it again changes nothing`, async (t) => {
    const { chain, store } = await open(t, engine);
    const transaction = sign(alice, 1, createPublic("a", "{}"));
    const hash = await chain.submit(transaction);
    t.is(hash, sha256(transaction.body));
    t.is(await chain.submit(transaction), hash);
    t.deepEqual(await store.transactionStatus(hash), { status: "pending" });
    t.is(await store.pendingCount(), 1);

    const { block } = await chain.produceBlock(authority);
    t.deepEqual(await store.transactionStatus(hash), { status: "included", blockNumber: 1n });
    t.is(await store.pendingCount(), 0);
    t.is(chain.head()!.hash, block!.hash);
    t.is(await chain.submit(transaction), hash);
    t.is((await chain.produceBlock(authority)).block, undefined);
    t.is(chain.head()!.number, 1n);
  });

  test(`${engine}: rejects an invalid transaction on submission`, async (t) => {
    const { chain } = await open(t, engine);
    const valid = sign(alice, 5, createPublic("a", "{}"));
    const invalid: readonly (readonly [string, Parameters<Chain["submit"]>[0]])[] = [
      ["INVALID_SIGNATURE", { ...valid, signature: bob.sign(transactionMessage(valid.body)) }],
      ["INVALID_SIGNATURE", { ...valid, signature: new Uint8Array() }],
      ["INVALID_SIGNATURE", sign(alice, 6, createPublic("a", "{}"), { sender: bob.publicKey })],
      ["INVALID_REQUEST", { ...valid, body: new Uint8Array([0xff]) }],
      ["INVALID_REQUEST", { ...valid, body: new Uint8Array() }],
      ["INVALID_REQUEST", sign(alice, 6, createPublic("a", "{}"), { sender: "0x12" })],
      ["INVALID_REQUEST", sign(alice, 6, createPublic("a", "{}"), { network: sha256("another") })],
      ["INVALID_REQUEST", sign(alice, 6, createPublic("a", "{}"), { expiresMs: now - 1 })],
      ["INVALID_REQUEST", sign(alice, 6, createPublic("a", "{}"), { expiresMs: now + 2 * 3_600_000 })],
      ["INVALID_SIGNATURE", { ...valid, signature: alice.sign(valid.body) }],
      ["INVALID_REQUEST", sign(alice, 2 ** 60, createPublic("a", "{}"))],
      ["INVALID_REQUEST", sign(alice, 6, createPublic("a", `"${"x".repeat(1_400_000)}"`))],
    ];
    for (const [reason, transaction] of invalid) {
      t.is(reasonOf(await t.throwsAsync(chain.submit(transaction))), reason);
    }
    await chain.submit(valid);
    await chain.produceBlock(authority);
    const used = await t.throwsAsync(chain.submit(sign(alice, 5, createPublic("b", "{}"))));
    t.regex(used.message, /nonce 5 is already used/);
  });

  test(`${engine}: rejects a transaction that fails in a block with a reason, and includes the others`, async (t) => {
    const { chain, store, database } = await open(t, engine);
    const first = await chain.submit(sign(alice, 1, createPublic("a", "{}")));
    const deletion = { case: "deleteProgram" as const, value: { storageAddress: unusedAddress } };
    const failing = await chain.submit(sign(alice, 2, deletion));
    const last = await chain.submit(sign(alice, 3, createPublic("c", "{}")));
    const { block } = await chain.produceBlock(authority);
    t.deepEqual(decodeBlock(block!.signed).transactionHashes, [first, last]);
    t.deepEqual(await store.transactionStatus(failing), {
      status: "rejected",
      reason: "There is no storage program at this address.",
    });
    t.is(await store.pendingCount(), 0);
    const programs = await database.read.rows<{ name: string }>((sql) =>
      sql("programs").orderBy("name").select("name"),
    );
    t.deepEqual(
      programs.map(({ name }) => name),
      ["a", "c"],
    );
  });

  test(`${engine}: a transaction always has a status while it moves from the mempool into a block`, async (t) => {
    const { chain, store } = await open(t, engine);
    for (let nonce = 1; nonce <= 30; nonce++) {
      const hash = await chain.submit(sign(alice, nonce, createPublic("a", "{}")));
      const production = chain.produceBlock(authority);
      for (let poll = 0; poll < 25; poll++) {
        t.not(await store.transactionStatus(hash), undefined);
      }
      await production;
      t.is((await store.transactionStatus(hash))!.status, "included");
    }
  });
}

test("a transaction that could not be stored releases its capacity in the mempool", async (t) => {
  let isBroken = true;
  const { chain } = await openParts(await engines.open(t, "sqlite"), [authority], {
    nowMs: () => now,
    wrapStore: (store) => ({
      ...store,
      mempool: {
        ...store.mempool,
        insertPending: (...parameters) =>
          isBroken ? Promise.reject(new Error("the disk is full")) : store.mempool.insertPending(...parameters),
      },
    }),
  });
  const document = `"${"x".repeat(1_000_000)}"`;
  for (let nonce = 1; nonce <= 80; nonce++) {
    await t.throwsAsync(chain.submit(sign(alice, nonce, createPublic("a", document))), {
      message: "the disk is full",
    });
  }
  isBroken = false;
  await t.notThrowsAsync(chain.submit(sign(alice, 81, createPublic("a", document))));
});

/** Returns blocks that another node has produced. */
async function produceBlocks(
  t: Teardown,
  count: number,
  authorities: readonly TestKey[] = [authority],
  transactionsOf: (number: number) => number = () => 1,
): Promise<Block[]> {
  const { chain } = await open(t, "sqlite", authorities);
  const blocks: Block[] = [];
  let nonce = 0;
  for (let number = 1; number <= count; number++) {
    for (let left = transactionsOf(number); left > 0; left--) {
      await chain.submit(sign(alice, ++nonce, createPublic(`p${nonce}`, `{"n":${number}}`)));
    }
    blocks.push((await chain.produceBlock(authorities[0]!)).block!.signed);
  }
  return blocks;
}

for (const engine of engines.names) {
  test(`${engine}: applies blocks of another node in order, each once`, async (t) => {
    const { chain, store, database } = await open(t, engine);
    const blocks = await produceBlocks(t, 3);
    const ahead = await t.throwsAsync(chain.apply(blocks[1]!));
    t.regex(ahead.message, /not the next block: expected block 1 after 0x/);
    for (const block of blocks) {
      await chain.apply(block);
    }
    t.is(await chain.apply(blocks[0]!), sha256(blocks[0]!.header));
    t.is(chain.head()!.number, 3n);
    t.deepEqual(toBinary(BlockSchema, (await store.block(2n))!.block), toBinary(BlockSchema, blocks[1]!));
    t.is((await database.read.rows((sql) => sql("programs"))).length, 3);
  });
}

/** Returns the block with a changed header, signed by this key. */
function resign(block: Block, change: object, key: TestKey): Block {
  const header = toBinary(
    BlockHeaderSchema,
    create(BlockHeaderSchema, { ...decodeBlock(block).header, proposer: key.publicKey, ...change }),
  );
  return create(BlockSchema, { header, signature: key.sign(blockMessage(header)), transactions: block.transactions });
}

for (const engine of engines.names) {
  test(`${engine}: rejects an invalid block and stores none of its transactions`, async (t) => {
    const { chain, store, database } = await open(t, engine);
    const [block] = await produceBlocks(t, 1);
    const failing = sign(alice, 2, { case: "deleteProgram", value: { storageAddress: unusedAddress } });
    const extended = create(BlockSchema, { ...block!, transactions: [...block!.transactions, failing] });
    const forged = {
      ...block!.transactions[0]!,
      signature: bob.sign(transactionMessage(block!.transactions[0]!.body)),
    };
    const invalid = sign(bob, 7, createPublic("wrong", "no JSON"));
    const cases: readonly (readonly [string, RegExp, Block])[] = [
      ["another proposer", /not an authority/, resign(block!, {}, second)],
      [
        "another signature",
        /not signed by its proposer/,
        create(BlockSchema, { ...block!, signature: alice.sign(block!.header) }),
      ],
      ["another number", /not the next block/, resign(block!, { number: 2n }, authority)],
      [
        "another previous block",
        /not the next block/,
        resign(block!, { previousHash: sha256(block!.header) }, authority),
      ],
      ["a time in the future", /in the future/, resign(block!, { timestampMs: BigInt(now + 3_600_000) }, authority)],
      ["other transactions", /does not hold the transactions/, extended],
      // The hash in the header matches, because it does not cover signatures.
      [
        "a transaction with the signature of another key",
        /not signed by its sender/,
        create(BlockSchema, { ...block!, transactions: [forged, ...block!.transactions.slice(1)] }),
      ],
      [
        "the same, with a transaction that cannot be applied",
        /not signed by its sender/,
        resign(
          create(BlockSchema, { ...extended, transactions: [forged, ...extended.transactions.slice(1)] }),
          { transactionsHash: hashOf(extended.transactions) },
          authority,
        ),
      ],
      [
        "a transaction with an invalid document",
        /is not JSON/,
        resign(
          create(BlockSchema, { ...block!, transactions: [invalid] }),
          { transactionsHash: hashOf([invalid]) },
          authority,
        ),
      ],
      [
        "a transaction that cannot be applied",
        /no storage program/,
        resign(extended, { transactionsHash: hashOf(extended.transactions) }, authority),
      ],
      [
        "a transaction twice",
        /in a block already/,
        resign(
          create(BlockSchema, { ...block!, transactions: [block!.transactions[0]!, block!.transactions[0]!] }),
          { transactionsHash: hashOf([block!.transactions[0]!, block!.transactions[0]!]) },
          authority,
        ),
      ],
      ["another network", /of another network/, resign(block!, { genesisHash: sha256("another") }, authority)],
      ["bytes that are no header", /cannot be decoded/, create(BlockSchema, { header: new Uint8Array([0xff]) })],
    ];
    for (const [what, message, invalidBlock] of cases) {
      const error = await t.throwsAsync(chain.apply(invalidBlock), undefined, what);
      t.regex(error.message, message, what);
      t.true(error instanceof RpcError, what);
    }
    // Transactions of a rejected block are not cached as valid.
    await t.throwsAsync(chain.submit(forged), { message: /not signed by its sender/ });
    await t.throwsAsync(chain.submit(invalid), { message: /is not JSON/ });
    t.is(chain.head()!.number, 0n);
    t.deepEqual(await database.read.rows((sql) => sql("programs")), []);
    t.deepEqual(await database.read.rows((sql) => sql("transactions")), []);
    t.is(await store.block(1n), undefined);
    await chain.apply(block!);
    t.is(chain.head()!.number, 1n);
    const appliedBefore = create(BlockSchema, { ...block!, transactions: [forged, ...block!.transactions.slice(1)] });
    await t.throwsAsync(chain.apply(appliedBefore), { message: /not signed by its sender/ });
  });
}

/** Returns the hash in a header that identifies these transactions. */
function hashOf(transactions: readonly { readonly body: Uint8Array }[]): string {
  return sha256(Buffer.concat(transactions.map(({ body }) => Buffer.from(sha256(body).slice(2), "hex"))));
}

for (const engine of engines.names) {
  test(`${engine}: applies concurrently submitted blocks in the order of their submission`, async (t) => {
    const { chain } = await open(t, engine);
    // The first block takes longer to verify than the others.
    const blocks = await produceBlocks(t, 5, [authority], (number) => (number === 1 ? 400 : 1));
    await Promise.all(blocks.map((block) => chain.apply(block)));
    t.is(chain.head()!.number, 5n);
  });
}
