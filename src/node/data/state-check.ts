/** Check of stored rows against the state root of the latest header: each item is verified by its current proof. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import type { Queries } from "../../db/queries/database.js";
import { findProofs, type RequestedItems } from "../../state/service.js";
import { createStateReads, toProven } from "../chain/state.js";

/**
 * Checks one item.
 *
 * @throws CorruptionError if the item is missing in the state, or differs there.
 */
export type CheckState = (what: string, named: Partial<RequestedItems>) => Promise<void>;

const nothing: RequestedItems = {
  ...{ address: undefined, fields: [], withDocument: false, withMetadata: false },
  ...{ nullifiers: [], senders: [], withCommitments: false },
};

/** Limit on findings. With more, the tree or a table is corrupt, and further findings add no information. */
const maxFindings = 100;

/** Creates the check for one verification. */
export function createStateCheck(read: Queries): CheckState {
  let found = 0;
  const blocks = createBlockStore(read);
  const reads = createStateReads(read);
  const rules = { isLatest: () => true, mayRead: () => undefined };
  return async (what, named) => {
    if (found > maxFindings) {
      return;
    }
    // A block that is stored during the read changes the state, so the read is repeated.
    for (let before: string | undefined; ;) {
      const head = await blocks.head();
      if (head === undefined) {
        return;
      }
      if ((await findProofs(reads, toProven(head.number, head), { ...nothing, ...named }, rules)) !== undefined) {
        return;
      }
      if (head.hash === before) {
        found++;
        throw new CorruptionError(`The stored data of ${what} does not match the state root of block ${head.number}.`);
      }
      before = head.hash;
    }
  };
}
