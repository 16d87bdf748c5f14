/** Blocks of 25 mixed transactions, as an active network creates them. */
import { createHash } from "node:crypto";
import type { Block, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { AccessMode } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import {
  commit,
  createPublic,
  type Operation,
  signTransaction,
  signZk,
  spend,
} from "../../../test/helpers/chain/transactions.js";
import { authority, withChain } from "../blocks.js";

/** Number of transactions in a block. */
export const mixedTransactions = 25;

const senders = Array.from({ length: 8 }, (_, i) => testKey(i + 10));
const documentOf = (nonce: number): string =>
  JSON.stringify({
    title: `program ${nonce}`,
    count: nonce,
    tags: ["a", "b"],
    open: true,
    note: "x".repeat(80),
    owner: { id: nonce },
  });
const list = (nonce: number): string => JSON.stringify({ list: [nonce], text: "y".repeat(200) });

/** Creates blocks in an SQLite file: a third creates programs, a third sets fields, and a third is other operations. */
export async function makeMixedBlocks(file: string, count: number): Promise<Block[]> {
  const blocks: Block[] = [];
  await withChain(`sqlite:${file}`, async (chain) => {
    const { genesisHash: network } = chain.head()!;
    const addresses: { readonly key: (typeof senders)[number]; readonly address: string }[] = [];
    let nonce = 0;
    const pick = (i: number) => addresses[(i * 7_919) % addresses.length]!;
    for (let number = 1; number <= count; number++) {
      const transactions: Transaction[] = [];
      const add = (key: typeof authority, operation: Operation): void =>
        void transactions.push(signTransaction(key, ++nonce, operation, { network }));
      const [created, written]: [typeof addresses, typeof addresses] = [[], []];
      const creates = number === 1 ? mixedTransactions : 8;
      for (let i = 0; i < creates; i++) {
        const key = senders[i % senders.length]!;
        add(key, createPublic(`program ${nonce + 1}`, documentOf(nonce + 1)));
        created.push({ key, address: programAddress(key.publicKey, `program ${nonce}`, BigInt(nonce), "") });
      }
      for (let i = 0; transactions.length < mixedTransactions; i++) {
        const { key, address: storageAddress } = pick(number * 31 + i);
        if (i < 9) {
          add(key, {
            case: "setField",
            value: { storageAddress, field: i % 2 === 0 ? "count" : `f${i}`, value: `${nonce}` },
          });
        } else if (i < 11) {
          written.push({ key, address: storageAddress });
          add(key, {
            case: "writeProgram",
            value: { storageAddress, data: { data: { case: "json", value: list(nonce) } } },
          });
        } else if (i < 14) {
          const { key: writer, address } = written[i % written.length]!;
          add(writer, { case: "appendItem", value: { storageAddress: address, field: "list", value: `[${nonce}]` } });
        } else if (i < 15) {
          add(key, {
            case: "updateAccess",
            value: {
              storageAddress,
              access: { mode: AccessMode.RESTRICTED, allowed: [senders[number % 8]!.publicKey] },
            },
          });
        } else {
          const text = createHash("sha256").update(`${++nonce}`).digest("hex");
          const name = `0x00${text.slice(2)}`;
          transactions.push(
            signZk(authority, nonce, transactions.length % 2 === 0 ? spend(name) : commit(name), { network }),
          );
        }
      }
      await Promise.all(transactions.map((transaction) => chain.submit(transaction)));
      const { block, rejected } = await chain.produceBlock(authority);
      if (block?.transactions.length !== mixedTransactions) {
        throw new Error(`A block has ${block?.transactions.length} transactions: ${[...rejected.values()].join(" ")}`);
      }
      blocks.push(block.signed);
      addresses.push(...created);
    }
  });
  return blocks;
}
