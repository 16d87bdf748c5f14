/** Shows programs in a table. */
import type { ProgramSummary } from "./answers.js";
import type { Content } from "./dom.js";
import { link, ownerLink, timeAgo } from "./parts.js";
import { sizeOf } from "./words.js";

export const programColumns = ["Name", "Size", "Changed", "Owner"];

export function programRows(programs: readonly ProgramSummary[]): Content[][] {
  return programs.map(({ storageAddress, programName, sizeBytes, updatedAt, owner }) => [
    link({ kind: "program", address: storageAddress }, programName),
    sizeOf(sizeBytes),
    timeAgo(Date.parse(updatedAt)),
    ownerLink(owner),
  ]);
}
