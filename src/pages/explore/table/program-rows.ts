/** Columns of tables of programs. */
import type { ProgramSummary } from "../responses.js";
import type { Column } from "./data-table.js";
import { namedProgramLink, ownerLink, programLink, timeAgo } from "../parts.js";
import { sizeOf } from "../format.js";

export const programColumns: readonly Column<ProgramSummary>[] = [
  {
    name: "Name",
    cell: ({ storageAddress, programName }) => namedProgramLink(storageAddress, programName),
    csv: ({ programName }) => programName,
  },
  {
    name: "Address",
    cell: ({ storageAddress }) => programLink(storageAddress),
    csv: ({ storageAddress }) => storageAddress,
  },
  { name: "Size", cell: ({ sizeBytes }) => sizeOf(sizeBytes), csv: ({ sizeBytes }) => sizeBytes },
  { name: "Changed", cell: ({ updatedAt }) => timeAgo(Date.parse(updatedAt)), csv: ({ updatedAt }) => updatedAt },
  { name: "Owner", cell: ({ owner }) => ownerLink(owner), csv: ({ owner }) => owner },
];
