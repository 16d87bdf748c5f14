/** Generates the random operations of a sender. Each is valid if all earlier ones were applied. */
import { programAddress } from "../../../src/storage/changes/write.js";
import type { Chance } from "../../../test/helpers/wire/hostile-values.js";
import type { TestKey } from "../../../test/helpers/chain/keys.js";
import {
  commit,
  createPublic,
  type Operation,
  signTransaction,
  signZk,
} from "../../../test/helpers/chain/transactions.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import type { Change, SentTransaction } from "../model/history.js";

/** Transaction, with its description for the model. */
export interface Prepared {
  readonly transaction: Transaction;
  readonly sent: SentTransaction;
}

/** Program that is being changed, in its state after all operations so far. */
interface Program {
  readonly address: string;
  readonly fields: Set<string>;
  items: number;
  changes: number;
}

const lifetimeMs = 600_000;
const maxChanges = 40;

export function createOperations(chance: Chance, key: TestKey, network: string) {
  let nonce = 0;
  let program: Program | undefined;

  function value(): unknown {
    return chance.weigh<() => unknown>([
      [10, () => chance.below(1_000_000)],
      [6, () => Buffer.from(chance.bytes(4 + chance.below(60))).toString("base64")],
      [3, () => ({ a: [chance.below(9), null, true], b: { c: "é😀" } })],
      // A value of this size makes the node store the document in parts.
      [1, () => "x".repeat(4_000 + chance.below(30_000))],
    ])();
  }

  function create(): { readonly operation: Operation; readonly change: Change } {
    const name = `program ${nonce}`;
    const document = { log: [], first: value() };
    const address = programAddress(key.publicKey, name, BigInt(nonce), "");
    program = { address, fields: new Set(["first"]), items: 0, changes: 0 };
    return { operation: createPublic(name, JSON.stringify(document)), change: { kind: "create", address, document } };
  }

  function remove({ address }: Program): { readonly operation: Operation; readonly change: Change } {
    program = undefined;
    const operation: Operation = { case: "deleteProgram", value: { storageAddress: address } };
    return { operation, change: { kind: "delete", address } };
  }

  function change(current: Program): { readonly operation: Operation; readonly change: Change } {
    const { address, fields } = current;
    current.changes++;
    const [storageAddress, log] = [address, "log"];
    const kind = chance.weigh<Change["kind"]>([
      [5, "set"],
      [8, "append"],
      [fields.size > 3 ? 2 : 0, "delete field"],
      [current.items > 2 ? 2 : 0, "set item"],
      [current.items > 2 ? 2 : 0, "delete item"],
    ]);
    const index = chance.below(Math.max(1, current.items));
    const newValue = value();
    const text = JSON.stringify(newValue);
    switch (kind) {
      case "append":
        current.items++;
        return {
          operation: { case: "appendItem", value: { storageAddress, field: log, value: text } },
          change: { kind, address, field: log, value: newValue },
        };
      case "set item":
        return {
          operation: { case: "setItem", value: { storageAddress, field: log, index, value: text } },
          change: { kind, address, field: log, index, value: newValue },
        };
      case "delete item":
        current.items--;
        return {
          operation: { case: "deleteItem", value: { storageAddress, field: log, index } },
          change: { kind, address, field: log, index },
        };
      case "delete field": {
        const field = chance.pick([...fields]);
        fields.delete(field);
        return {
          operation: { case: "deleteField", value: { storageAddress, field } },
          change: { kind, address, field },
        };
      }
      default: {
        const field = `f${chance.below(12)}`;
        fields.add(field);
        return {
          operation: { case: "setField", value: { storageAddress, field, value: text } },
          change: { kind: "set", address, field, value: newValue },
        };
      }
    }
  }

  return {
    /** Creates and signs the next transaction. */
    next(nowMs: number): Prepared {
      nonce++;
      const expiresMs = nowMs + lifetimeMs;
      const sign = (transaction: Transaction, change: Change): Prepared => {
        const hash = sha256(transaction.body);
        return { transaction, sent: { hash, sender: key.publicKey, nonce, expiresMs, change } };
      };
      if (chance.below(25) === 0) {
        const commitment = `0x00${Buffer.from(chance.bytes(31)).toString("hex")}`;
        const transaction = signZk(key, nonce, commit(commitment), { network, expiresMs });
        return sign(transaction, { kind: "commit", commitment });
      }
      const isOld = program !== undefined && program.changes >= maxChanges;
      const step =
        program === undefined || (isOld && chance.below(2) === 0)
          ? create()
          : isOld
            ? remove(program)
            : change(program);
      return sign(signTransaction(key, nonce, step.operation, { network, expiresMs }), step.change);
    },
    /** Starts with a new program, so that later operations do not depend on one with an unknown outcome. */
    dropProgram: () => void (program = undefined),
  };
}
