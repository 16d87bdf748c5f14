/** Verifies the proof of a storage program. */
import {
  type FieldProof,
  type GetProofRequest,
  type ObjectState,
  type ProgramProof,
  type ProgramRecord,
  ProgramRecordSchema,
  type ProgramState,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { isSame } from "../../../src/tree/hashes.js";
import { zeroHash } from "../../../src/tree/state-format.js";
import { toObjectParts, typeOfDocument } from "./document.js";
import { require32Bytes, stateHashes } from "./hashing.js";
import { decode } from "./headers.js";
import { checkPath } from "./paths.js";
import { ProofError } from "./proof-error.js";

/**
 * Proven state of a program:
 * - absent: no program was ever at the address;
 * - changed: a program existed after that block and has changed since; its old content is not stored.
 */
export type ProvedProgram = { readonly kind: "absent" } | { readonly kind: "changed" } | ProvedProgramState;

/** Existing program, or a deleted one if its record says so. */
export interface ProvedProgramState {
  readonly kind: "present";
  readonly record: ProgramRecord;
  readonly hasMetadata: boolean;
  /** JSON text; undefined if it was not requested, or there is none. */
  readonly metadata: string | undefined;
  /** Kind of its document; `plain` is any document that is not an object. */
  readonly document: "none" | "plain" | "object";
  /** Text of the document, as `GetProgram` returns it; undefined if it was not requested, or there is none. */
  readonly data: string | undefined;
  /** JSON texts of the requested fields by name; undefined for a field that the document does not have. */
  readonly fields: ReadonlyMap<string, string | undefined>;
}

/**
 * Verifies the proof of a program.
 *
 * @param request proof request, which selects the required parts.
 * @param root of the state.
 * @throws ProofError path, value, missing, malformed
 */
export function checkProgram(
  request: GetProofRequest,
  proof: ProgramProof | undefined,
  root: Uint8Array,
): ProvedProgram | undefined {
  const { storageAddress } = request;
  if (storageAddress === undefined) {
    return undefined;
  }
  if (proof?.storageAddress !== storageAddress) {
    throw new ProofError(
      "missing",
      `The response does not prove the program ${storageAddress}, which the request names.`,
    );
  }
  const { path, state } = proof;
  const valueHash = state.case === undefined ? undefined : state.case === "program" ? hashOf(state.value) : state.value;
  const leaf = { root, key: stateHashes.programKey(storageAddress), valueHash };
  checkPath(path, leaf, `the program ${storageAddress}`);
  switch (state.case) {
    case undefined:
      return { kind: "absent" };
    case "valueHash":
      requirePast(request, `the program ${storageAddress}`);
      return { kind: "changed" };
    case "program":
      return readState(request, state.value, storageAddress);
  }
}

/** Rejects a bare hash unless the request names a block. For the latest block, a node has the full value. */
export function requirePast({ block }: GetProofRequest, subject: string): void {
  if (block === undefined) {
    throw new ProofError("missing", `The response has only a hash of ${subject}.`);
  }
}

function hashOf({ blinding, record, metadataHash, document }: ProgramState): Uint8Array {
  return stateHashes.program({
    blinding: require32Bytes(blinding, "The blinding"),
    record,
    metadataHash: require32Bytes(metadataHash, "The hash of the metadata"),
    documentHash:
      document.case === undefined
        ? zeroHash
        : document.case === "object"
          ? hashOfObject(document.value)
          : require32Bytes(document.value, "The hash of the document"),
  });
}

function hashOfObject({ fieldsRoot, lastKey, tailHash }: ObjectState): Uint8Array {
  return stateHashes.objectDocument({
    fieldsRoot: require32Bytes(fieldsRoot, "The root of the fields"),
    lastKey: require32Bytes(lastKey, "The key of the last field"),
    tailHash: require32Bytes(tailHash, "The hash of the text after the last field"),
  });
}

function readState(request: GetProofRequest, state: ProgramState, address: string): ProvedProgramState {
  const record = decode(ProgramRecordSchema, state.record, "The record of the program");
  if (record.storageAddress !== address) {
    throw new ProofError("value", `The record of the program ${address} is that of another program.`);
  }
  const hasMetadata = !isSame(state.metadataHash, zeroHash);
  const { document } = state;
  return {
    kind: "present",
    record,
    hasMetadata,
    metadata: request.withMetadata && hasMetadata ? readMetadata(state) : undefined,
    document: document.case === undefined ? "none" : document.case === "object" ? "object" : "plain",
    data: request.withDocument && document.case !== undefined ? readData(state) : undefined,
    fields: document.case === "object" ? readFields(request.fields, document.value) : new Map(),
  };
}

function readMetadata({ metadata, metadataHash }: ProgramState): string {
  if (metadata === undefined) {
    throw new ProofError("missing", "The response does not have the program's metadata.");
  }
  if (!isSame(stateHashes.text(metadata), metadataHash)) {
    throw new ProofError("value", "The program's metadata does not match its proven hash.");
  }
  return metadata;
}

function readData({ data, document }: ProgramState): string {
  if (data === undefined) {
    throw new ProofError("missing", "The response does not have the program's document.");
  }
  if (!isDocument(data, document)) {
    throw new ProofError("value", "The program's document does not match its proven hash.");
  }
  return data;
}

function isDocument(data: string, document: ProgramState["document"]): boolean {
  if (document.case !== "object") {
    return document.case === "textHash" && isSame(stateHashes.plainDocument(data), document.value);
  }
  const parts = typeOfDocument(data) === "object" ? toObjectParts(data) : undefined;
  return parts !== undefined && isSame(stateHashes.objectDocument(parts), hashOfObject(document.value));
}

function readFields(names: readonly string[], { fieldsRoot, fields }: ObjectState): Map<string, string | undefined> {
  if (fields.length !== names.length) {
    throw new ProofError("missing", `The response proves ${fields.length} fields, not the requested ${names.length}.`);
  }
  return new Map(names.map((name, i) => [name, readField(name, fields[i]!, fieldsRoot)]));
}

function readField(name: string, proof: FieldProof, root: Uint8Array): string | undefined {
  const subject = `the field ${JSON.stringify(name.slice(0, 100))}`;
  if (proof.name !== name) {
    throw new ProofError("missing", `The response does not prove ${subject}, which the request names.`);
  }
  const { path, field } = proof;
  const valueHash =
    field &&
    stateHashes.field({ ...field, previousKey: require32Bytes(field.previousKey, "The key of the field before") });
  checkPath(path, { root, key: stateHashes.fieldKey(JSON.stringify(name)), valueHash }, subject);
  return field?.value;
}
