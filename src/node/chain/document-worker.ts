/** What the thread for large documents does: the hashes of one, for the block that writes it. */
import { lowerThreadPriority } from "../../base/async/lower-thread-priority.js";
import { buildFieldsHere } from "../../storage/changes/field-tree-builder.js";
import type { GrownDocument } from "../../storage/programs/programs.js";

lowerThreadPriority();

/** A document to grow the tree of. */
export interface DocumentTask {
  readonly address: string;
  readonly text: string;
}

export const grow = ({ address, text }: DocumentTask): Promise<GrownDocument> => buildFieldsHere(address, text);
