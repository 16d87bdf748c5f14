/** Worker thread for large documents: hashes one document for the block that writes it. */
import { lowerThreadPriority } from "../../base/async/lower-thread-priority.js";
import { buildFieldsHere } from "../../storage/programs/program-state.js";
import type { BuiltDocument } from "../../storage/programs/programs.js";

lowerThreadPriority();

/** Document whose field tree the thread builds. */
export interface DocumentTask {
  readonly address: string;
  readonly text: string;
}

export const build = ({ address, text }: DocumentTask): Promise<BuiltDocument> => buildFieldsHere(address, text);
