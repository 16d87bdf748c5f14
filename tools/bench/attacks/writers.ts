/** Attacks with transactions of many keys, from a few addresses. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { proveAnything } from "../../../test/helpers/chain/groth16.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import {
  commit,
  createPublic,
  type Operation,
  signTransaction,
  signZk,
  submission,
} from "../../../test/helpers/chain/transactions.js";
import { ask, askJson } from "../../../test/helpers/wire/plain-client.js";
import { type Attack, attackerAddress, type Attacks, type AttackCounts, limitingRates, repeat } from "./attack.js";

/** Counts of accepted and rejected submissions. */
interface Submitted {
  taken: number;
  refused: number;
}

/** Submits in concurrent loops until the attack ends. Continues after each rejection. */
function floods(places: number, next: (network: string, i: number) => Transaction, pauseMs = 0): Attack {
  return {
    flags: limitingRates,
    async harm({ port, genesisHash }, signal): Promise<AttackCounts> {
      const count: Submitted = { taken: 0, refused: 0 };
      let i = 0;
      await repeat(places, signal, async () => {
        i++;
        await submit(port, i % places, next(genesisHash, i), count);
        await sleep(pauseMs);
      });
      return { "transactions taken": count.taken, "transactions refused": count.refused };
    },
  };
}

/** Signs each transaction with a new key. */
function byNewKeys(operation: (i: number) => Operation) {
  return (network: string, i: number): Transaction => signTransaction(newKey(), 1, operation(i), { network });
}

const oneKey = newKey();
function byOneKey(operation: (i: number) => Operation) {
  return (network: string, i: number): Transaction => signTransaction(oneKey, i, operation(i), { network });
}

const mebibyte = JSON.stringify({ large: "x".repeat(1_000_000) });
/** Document that takes the longest time to parse. */
const manyMembers = `{${Array.from({ length: 65_000 }, (_, i) => `"f${i}":${i}`).join()}}`;
const colliding = (i: number): Operation => ({
  case: "createProgram",
  value: i % 2 === 0 ? { programName: "a", salt: "7:x" } : { programName: "a:5", salt: "x" },
});
const longName = (): Operation => createPublic("long", JSON.stringify({ ["n".repeat(6_000)]: 1 }));

/** Appends to an array of the maximum size, three hundred times and more. */
const appends: Attack = {
  flags: limitingRates,
  async harm({ port, genesisHash: network }, signal): Promise<AttackCounts> {
    const count: Submitted = { taken: 0, refused: 0 };
    const array = `{"list":[${Array.from({ length: 500_000 }, () => "0").join()}]}`;
    await submit(port, 0, signTransaction(oneKey, 1, createPublic("array", array), { network }), count);
    const storageAddress = programAddress(oneKey.publicKey, "array", 1n, "");
    const append: Operation = { case: "appendItem", value: { storageAddress, field: "list", value: "1" } };
    let nonce = 1;
    await repeat(8, signal, async () => {
      await submit(port, 0, signTransaction(oneKey, ++nonce, append, { network }), count);
    });
    return { "transactions taken": count.taken, "transactions refused": count.refused };
  },
};

export const writerAttacks: Attacks = {
  "transactions whose addresses would collide": floods(2, byNewKeys(colliding)),
  "transactions with names that one engine cannot index": floods(2, byNewKeys(longName)),
  "transactions that append to an array of 500,000 items": appends,
  "transactions of new keys, from one address": floods(
    1,
    byNewKeys((i) => createPublic(`p${i}`, "{}")),
  ),
  "transactions of new keys, from twenty addresses": floods(
    20,
    byNewKeys((i) => createPublic(`p${i}`, "{}")),
  ),
  "transactions with documents of 1 MB, of one key": floods(
    4,
    byOneKey((i) => createPublic(`p${i}`, mebibyte)),
  ),
  "transactions with documents of 1 MB, of new keys": floods(
    4,
    byNewKeys((i) => createPublic(`p${i}`, mebibyte)),
  ),
  "transactions with documents of 65,000 fields, of new keys": floods(
    4,
    byNewKeys((i) => createPublic(`p${i}`, manyMembers)),
  ),
  "transactions with commitments, of new keys": floods(4, (network) =>
    signZk(newKey(), 1, commit(randomElement()), { network }),
  ),
  "transactions with wrong proofs, of new keys": {
    flags: limitingRates,
    async harm(target, signal): Promise<AttackCounts | undefined> {
      const { rootHash: root } = await askJson<{ rootHash: string }>(target.port, "/zk/merkle-root");
      const proof = proveAnything([1n, 2n]);
      const wrong = floods(20, (network) => {
        const value = { nullifierHash: randomElement(), root, proof };
        return signZk(newKey(), 1, { case: "spendNullifier", value }, { network });
      });
      return await wrong.harm(target, signal);
    },
  },
  "transactions of another network": floods(4, () =>
    signTransaction(newKey(), 1, createPublic("a", "{}"), { network: `0x${"1".repeat(64)}` }),
  ),
};

/** Value below the order of the field. */
function randomElement(): string {
  return `0x00${randomBytes(31).toString("hex")}`;
}

/** Submits a transaction from an attacker's address. Counts a rejection and a closed connection alike. */
async function submit(port: number, place: number, transaction: Transaction, count: Submitted): Promise<void> {
  const connection = { localAddress: attackerAddress(place) };
  const answer = await ask(port, "/chain/transactions", submission(transaction), connection).catch(() => undefined);
  count[answer?.status === 200 ? "taken" : "refused"]++;
}
