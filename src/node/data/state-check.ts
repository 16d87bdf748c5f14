/** Whether what the tables hold is what the newest header commits to: each thing against its proof, as it is now. */
import { CorruptionError } from "../../base/errors/corruption.js";
import { createBlockStore } from "../../chain/blocks/block-store.js";
import type { Queries } from "../../db/queries/database.js";
import { findProofs, type Wanted } from "../../state/service.js";
import { createStateReads, toProven } from "../chain/state.js";

/** Looks at one thing. Throws DamageError where it is not in the state, or is another thing there. */
export type CheckState = (what: string, named: Partial<Wanted>) => Promise<void>;

const nothing: Wanted = {
  ...{ address: undefined, fields: [], withDocument: false, withMetadata: false },
  ...{ nullifiers: [], senders: [], withCommitments: false },
};

/** With more than so many findings it is the tree that is damaged, or a table: the rest of it would say nothing more. */
const mostFindings = 100;

/** Builds the check, for one walk. */
export function createStateCheck(read: Queries): CheckState {
  let found = 0;
  const blocks = createBlockStore(read);
  const reads = createStateReads(read);
  const rules = { isNewest: () => true, mayRead: () => undefined };
  return async (what, named) => {
    if (found > mostFindings) {
      return;
    }
    // A block that comes while it is read makes it another one: then it is read anew.
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
        throw new CorruptionError(
          `What the database holds of ${what} is not what the header of block ${head.number} names.`,
        );
      }
      before = head.hash;
    }
  };
}
