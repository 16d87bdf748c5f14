/** Worker thread for large documents: hashes one document for the block that writes it. */
import { lowerThreadPriority } from "../../base/async/lower-thread-priority.js";
import { buildFieldsHere } from "../../storage/changes/field-tree-builder.js";
import type { GrownDocument } from "../../storage/programs/programs.js";

lowerThreadPriority();

/** Document whose field tree the thread builds. */
export interface DocumentTask {
  readonly address: string;
  readonly text: string;
}

export const grow = ({ address, text }: DocumentTask): Promise<GrownDocument> => buildFieldsHere(address, text);
