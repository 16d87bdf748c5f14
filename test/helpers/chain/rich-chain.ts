/** Blocks with data of every kind, such as hostile transactions, and large documents with many changes. */
import type { Block, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { createTreeStore } from "../../../src/zk/tree-store.js";
import { openChain } from "./chain.js";
import { genesisOf, type TestKey, testKey } from "./keys.js";
import { createHostileTransactions, type HostileTransactions } from "./hostile-transactions.js";
import { createPublic, type Operation, signTransaction } from "./transactions.js";

export interface RichChain {
  readonly blocks: readonly Block[];
  readonly hostile: HostileTransactions;
}

const writer = testKey(77);

/** Creates blocks of this authority in an SQLite file. The same start time gives the same blocks. */
export async function makeRichChain(
  file: string,
  authority: TestKey,
  count: number,
  fromMs = Date.now() - 3_600_000,
): Promise<RichChain> {
  const database = await openDatabase(`sqlite:${file}`);
  await migrate(database);
  let now = fromMs;
  const network = sha256(genesisOf(authority));
  const chain = await openChain(database, [authority], { nowMs: () => now });
  const hostile = createHostileTransactions({ seed: 7, network, authority, nowMs: () => now, hasProofs: false });
  const blocks: Block[] = [];
  let nonce = 0;
  const submit = async (transaction: Transaction): Promise<boolean> =>
    await chain.submit(transaction).then(
      () => true,
      () => false,
    );
  const write = (operation: Operation): Transaction =>
    signTransaction(writer, ++nonce, operation, { network, expiresMs: now + 600_000 });
  const items = (from: number, many: number): string =>
    JSON.stringify(Array.from({ length: many }, (_, i) => `item ${from + i} é`));
  const large = programAddress(writer.publicKey, "large", 1n, "");
  while (blocks.length < count) {
    if (nonce === 0) {
      await submit(
        write(createPublic("large", `{"list": ${items(0, 3_000)}, "text": "${"x".repeat(20_000)}", "n": 1}`)),
      );
    } else {
      const storageAddress = large;
      await submit(write({ case: "appendItem", value: { storageAddress, field: "list", value: items(nonce, 400) } }));
      await submit(
        write({ case: "setField", value: { storageAddress, field: `f${nonce}`, value: `{"a": ${nonce}}` } }),
      );
      await submit(
        write({ case: "deleteItem", value: { storageAddress, field: "list", index: (nonce * 37) % 2_000 } }),
      );
    }
    for (let i = 0; i < 15; i++) {
      const transaction = hostile.next();
      if (await submit(transaction)) {
        hostile.learnTaken(transaction);
      }
    }
    await submit(hostile.honest());
    now += 20_000;
    const { block } = await chain.produceBlock(authority, now);
    if (block !== undefined) {
      blocks.push(block.signed);
      hostile.learnRoot((await createTreeStore(database.read).root()).root);
    }
  }
  await database.close();
  return { blocks, hostile };
}
