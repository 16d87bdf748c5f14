/** Columns of tables of programs. */
import type { ProgramSummary } from "../responses.js";
import { type Column, column } from "./data-table.js";
import { namedProgramLink, ownerLink, programLink, timeAndAge } from "../parts.js";
import { sizeOf } from "../format.js";

export const programColumns: readonly Column<ProgramSummary>[] = [
  column("Name", "programName", (name, { storageAddress }) => namedProgramLink(storageAddress, name)),
  column("Address", "storageAddress", programLink),
  column("Size", "sizeBytes", sizeOf),
  column("Changed", "updatedAt", (time) => timeAndAge(Date.parse(time))),
  column("Owner", "owner", ownerLink),
];
