/**
 * Executes operations on storage programs, inside the transaction of their block. An operation that fails throws an
 * RpcError, which rejects its transaction.
 */
import { hash } from "node:crypto";
import type { CreateProgram, ProgramData, StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { programAddress } from "../../base/program-address.js";
import { RpcError } from "../../rpc/errors.js";
import { typeOfJson } from "../documents/json-text.js";
import { canWrite, isHidden, readAccessControl } from "../programs/access.js";
import type { ChangeableProgram, DocumentState, ProgramContent } from "../programs/programs.js";
import { programNotFound } from "../programs/rejections.js";
import { CostCounter } from "./cost.js";
import { ObjectDocument } from "./document-changes.js";
import type { DocumentRows } from "./document-rows-store.js";
import type { ProgramChanges } from "./program-change-store.js";

export { programAddress };

export interface OperationContext {
  /** Identity of the sender: 0x and 64 lowercase hex digits. */
  readonly sender: string;
  readonly nonce: bigint;
  readonly timeMs: number;
  /** Signature of the transaction by its sender. */
  readonly signature: Uint8Array;
}

/**
 * Executes one operation that passed {@link checkOperation}. An operation that throws may already have changed rows, so
 * run it inside a savepoint.
 *
 * @returns the cost in bytes, as cost.ts counts it.
 * @throws RpcError as the operation's comment in the proto describes.
 */
export async function executeOperation(
  programs: ProgramChanges,
  { operation }: StorageOperation,
  context: OperationContext,
): Promise<number> {
  const cost = new CostCounter();
  const { sender, timeMs, signature } = context;

  async function find(address: string): Promise<ChangeableProgram> {
    const program = await programs.find(address, cost);
    if (program === undefined) {
      throw new RpcError(...programNotFound);
    }
    return program;
  }

  async function findWritable(address: string): Promise<ChangeableProgram> {
    const program = await find(address);
    if (!canWrite(program.access, sender)) {
      throw permissionError(program, sender, "The sender may not change this storage program.");
    }
    return program;
  }

  async function findOwned(address: string): Promise<ChangeableProgram> {
    const program = await find(address);
    if (program.access.owner !== sender) {
      throw permissionError(program, sender, "Only the owner of a storage program may do this.");
    }
    return program;
  }

  switch (operation.case) {
    case "createProgram":
      await create(programs, operation.value, context, cost);
      break;
    case "writeProgram": {
      const { storageAddress, data } = operation.value;
      await programs.replaceContent(await findWritable(storageAddress), readContent(data), timeMs, cost);
      break;
    }
    case "setField":
    case "deleteField":
    case "setItem":
    case "appendItem":
    case "deleteItem": {
      const program = await findWritable(operation.value.storageAddress);
      requireObject(program);
      const change = (rows: DocumentRows): Promise<DocumentState> =>
        changeDocument(new ObjectDocument(rows, program), operation);
      await programs.changeDocument(program.address, change, timeMs, cost);
      break;
    }
    case "updateAccess": {
      const { storageAddress, access } = operation.value;
      const { address } = await findOwned(storageAddress);
      const rule = { access: readAccessControl(sender, access), blinding: blindingOf(signature) };
      await programs.setAccess(address, rule, timeMs, cost);
      break;
    }
    case "deleteProgram":
      await programs.delete(await findOwned(operation.value.storageAddress), timeMs, cost);
      break;
    case undefined:
      throw new Error("An empty operation passed the check of its transaction.");
  }
  return cost.bytes;
}

type DocumentOperation = Extract<
  StorageOperation["operation"],
  { case: "setField" | "deleteField" | "setItem" | "appendItem" | "deleteItem" }
>;

async function changeDocument(document: ObjectDocument, operation: DocumentOperation): Promise<DocumentState> {
  const { field } = operation.value;
  switch (operation.case) {
    case "setField":
      return await document.setField(field, operation.value.value);
    case "deleteField":
      return await document.deleteField(field);
    case "setItem": {
      const { index, value } = operation.value;
      return await document.changeItem(field, { kind: "set", index, value });
    }
    case "appendItem":
      return await document.changeItem(field, { kind: "append", value: operation.value.value });
    case "deleteItem":
      return await document.changeItem(field, { kind: "delete", index: operation.value.index });
  }
}

async function create(
  programs: ProgramChanges,
  operation: CreateProgram,
  { sender, nonce, timeMs, signature }: OperationContext,
  cost: CostCounter,
): Promise<void> {
  const { programName: name, salt, metadata } = operation;
  const address = programAddress(sender, name, nonce, salt);
  if (await programs.wasCreated(address)) {
    throw new RpcError("ALREADY_EXISTS", "There is or was a storage program at this address.");
  }
  const access = readAccessControl(sender, operation.access);
  const content = readContent(operation.data);
  const blinding = blindingOf(signature);
  await programs.insert({ address, name, access, content, metadata, blinding }, timeMs, cost);
}

const beforeBlinding = Buffer.from("gatehouse blinding v1\0", "latin1");

/**
 * Derives the blinding of a program from the signature of its transaction: 64 hex digits. Every node knows the
 * signature; apart from nodes, only readers of the transaction do. It cannot be derived from other data that the sender
 * published.
 */
function blindingOf(signature: Uint8Array): string {
  return hash("sha256", Buffer.concat([beforeBlinding, signature]), "hex");
}

/** Converts the data of an operation to the contents of a program. */
function readContent(data: ProgramData | undefined): ProgramContent {
  switch (data?.data.case) {
    case "json": {
      const text = data.data.value;
      return { encoding: "json", type: typeOfJson(text), text, sizeBytes: Buffer.byteLength(text) };
    }
    case "binary": {
      const bytes = data.data.value;
      const text = JSON.stringify(Buffer.from(bytes).toString("base64"));
      return { encoding: "binary", type: "binary", text, sizeBytes: bytes.length };
    }
    case undefined:
      return undefined;
  }
}

/**
 * Returns the error for a sender without permission. A sender that may not know of the program gets the error for a
 * missing program.
 */
function permissionError({ access }: ChangeableProgram, sender: string, message: string): RpcError {
  const mayKnow = !isHidden(access, sender) || canWrite(access, sender);
  return mayKnow ? new RpcError("PERMISSION_DENIED", message) : new RpcError(...programNotFound);
}

/** Checks that a program can have fields. An empty JSON program becomes an object with its first field. */
function requireObject({ encoding, type, sizeBytes }: ChangeableProgram): void {
  if (encoding !== "json" || (type !== "object" && sizeBytes > 0)) {
    throw new RpcError("INVALID_FIELD_TYPE", "The document is not an object; only objects have fields.");
  }
}
