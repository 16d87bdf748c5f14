/** Reads programs for proofs, from the current state of the database. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FieldProofSchema,
  ObjectStateSchema,
  ProgramStateSchema,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { requestWork, runWithoutYielding } from "../../base/async/yielding.js";
import type { Queries } from "../../db/queries/database.js";
import { rootOfLeaves } from "../../tree/change.js";
import { createPageStore } from "../../tree/page-store.js";
import type { FieldParts } from "../../tree/state-format.js";
import { type Proof, proveAmong, provePaths } from "../../tree/prove.js";
import { readRoot } from "../../tree/read-root.js";
import { checkReadable } from "../programs/read-guards.js";
import { fullReads, prepareAnyProgram, readFull } from "./program-query-store.js";
import { documentOfText, readEnd, readFieldParts } from "./program-state-store.js";
import {
  type DocumentParts,
  fieldKey,
  fieldsOfObject,
  hashDocument,
  hashProgram,
  partsOf,
} from "../programs/program-state.js";
import {
  checkDocument,
  checkProgram,
  parse,
  type ProgramRow,
  type TextRow,
  toRecord,
} from "../programs/stored-program.js";

/** Parts of a program to prove in addition to its record. */
export interface RequestedParts {
  readonly fields: readonly string[];
  readonly withDocument: boolean;
  readonly withMetadata: boolean;
}

type ObjectState = MessageInitShape<typeof ObjectStateSchema>;

/** Document as read for a proof: its hashed parts, the parts that the response contains, and its text if requested. */
interface DocumentReading {
  readonly parts: DocumentParts;
  readonly shown: MessageInitShape<typeof ProgramStateSchema>["document"];
  readonly text: string | undefined;
}

/**
 * Creates a function that reads a program for its proof, deleted or not. The result is undefined if no program was ever
 * created at the address.
 */
export function createProgramProofs(db: Queries) {
  const findProgram = prepareAnyProgram(db);
  return async (address: string, requested: RequestedParts) => {
    const found = await findProgram([address]);
    if (found === undefined) {
      return undefined;
    }
    const { record, data, row_hash } = found;
    const program = checkProgram(address, parse(address, record, "row") as ProgramRow);
    return await toReading(db, { ...program, data, row_hash }, requested);
  };
}

async function toReading(db: Queries, row: ProgramRow & TextRow, requested: RequestedParts) {
  const parts = partsOf(row);
  const { access } = toRecord(row);
  const document = await readDocument(db, row, requested);
  return {
    // The proof of a deleted program reveals nothing, so every caller may read it.
    checkReadable: (identity: string | undefined): void => (row.deleted ? undefined : checkReadable(access, identity)),
    valueHash: hashProgram(parts, document.parts),
    state: {
      ...parts,
      metadata: requested.withMetadata && !row.deleted ? (row.metadata ?? undefined) : undefined,
      document: document.shown,
      data: document.text,
    },
  };
}

async function readDocument(
  db: Queries,
  row: ProgramRow & TextRow,
  requested: RequestedParts,
): Promise<DocumentReading> {
  if (row.deleted) {
    return { parts: { kind: "none" }, shown: { case: undefined }, text: undefined };
  }
  if (row.in_parts) {
    return await readParts(db, row, requested);
  }
  const text = checkDocument(row, row);
  const requestedText = requested.withDocument ? text : undefined;
  if (text === undefined || row.type !== "object") {
    const parts = documentOfText(row, text);
    const textHash = { case: "textHash" as const, value: hashDocument(parts) };
    return { parts, shown: parts.kind === "none" ? { case: undefined } : textHash, text: requestedText };
  }
  const { leaves, fields, lastKey, tailHash } = runWithoutYielding(fieldsOfObject(text, requested.fields));
  const object = { fieldsRoot: rootOfLeaves(leaves), lastKey, tailHash };
  const sorted = leaves.toSorted((a, b) => Buffer.compare(a.key, b.key));
  const proofs = requested.fields.map((name) => toProof(name, proveAmong(sorted, fieldKey(name)), fields.get(name)));
  return objectReading(object, proofs, requestedText);
}

/** Reads a document that is stored in parts, with the proofs of its requested fields. */
async function readParts(db: Queries, row: ProgramRow & TextRow, requested: RequestedParts): Promise<DocumentReading> {
  const { address, size_bytes: sizeBytes } = row;
  const { load } = createPageStore(db, address);
  const object = { fieldsRoot: await readRoot(load), ...(await readEnd(db, row)) };
  const proofs = await provePaths(load, requested.fields.map(fieldKey));
  const fields: MessageInitShape<typeof FieldProofSchema>[] = [];
  for (const [i, name] of requested.fields.entries()) {
    fields.push(toProof(name, proofs[i]!, await readFieldParts(db, address, name)));
  }
  const text = requested.withDocument
    ? await fullReads.run(address, () => readFull(db, address, sizeBytes, requestWork))
    : undefined;
  return objectReading(object, fields, text);
}

function objectReading(
  object: Omit<Extract<DocumentParts, { kind: "object" }>, "kind">,
  fields: ObjectState["fields"],
  text: string | undefined,
): DocumentReading {
  return { parts: { kind: "object", ...object }, shown: { case: "object", value: { ...object, fields } }, text };
}

function toProof(
  name: string,
  { siblings, other }: Proof,
  field: FieldParts | undefined,
): MessageInitShape<typeof FieldProofSchema> {
  return { name, path: { siblings, other }, field };
}
