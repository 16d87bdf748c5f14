/** Check of stored rows against the state root of the latest header: each item is verified by its current proof. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import type { Queries } from "../../db/queries/database.js";
import { findProofs, type RequestedItems } from "../../state/service.js";
import { createStateReads, toProvenBlock } from "../chain/state.js";

/**
 * Checks one item.
 *
 * @param subject name of the item for error messages.
 * @throws CorruptionError if the item is missing in the state, or differs there.
 */
export type CheckState = (subject: string, items: Partial<RequestedItems>) => Promise<void>;

const noItems: RequestedItems = {
  ...{ address: undefined, fields: [], withDocument: false, withMetadata: false },
  ...{ nullifiers: [], senders: [], withCommitments: false },
};

/** Limit on findings. With more, the tree or a table is corrupt, and further findings add no information. */
const maxFindings = 100;

/** Creates the check for one verification. */
export function createStateCheck(read: Queries): CheckState {
  let findings = 0;
  const blocks = createBlockStore(read);
  const reads = createStateReads(read);
  const rules = { isLatest: () => true, mayRead: () => undefined };
  return async (subject, items) => {
    if (findings > maxFindings) {
      return;
    }
    // A block that is stored during the read changes the state, so the read is repeated.
    for (let checkedHash: string | undefined; ;) {
      const head = await blocks.head();
      if (head === undefined) {
        return;
      }
      if ((await findProofs(reads, toProvenBlock(head.number, head), { ...noItems, ...items }, rules)) !== undefined) {
        return;
      }
      if (head.hash === checkedHash) {
        findings++;
        throw new CorruptionError(
          `The stored data of ${subject} does not match the state root of block ${head.number}.`,
        );
      }
      checkedHash = head.hash;
    }
  };
}
