/**
 * Describes a transaction in English, from its JSON. Pages and the command line use it, so it runs without Node.js: the
 * caller provides the hash function.
 */
import { addressOf, addressText } from "./crypto/signing-payloads.js";

/** Operation by its name; exactly one member is set. */
type OperationJson = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** TransactionBody in JSON, reduced to the fields that a description needs. */
export interface BodyJson {
  readonly sender: string;
  readonly nonce: number;
  readonly storage?: OperationJson;
  readonly zk?: OperationJson;
}

export interface Operation {
  /** Name in the API, such as `setField`. */
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Text to print before the target: `Sets the field "title" of`. The name, if the operation is unknown. */
  readonly summary: string;
  /** Address of a program, or hash of a commitment or nullifier; left out if the operation has no target. */
  readonly target?: { readonly kind: "program" | "commitment" | "nullifier"; readonly name: string };
}

/**
 * Returns the operation of a transaction; undefined if the body has none.
 *
 * @param sha256Hex returns the SHA-256 of a text as hex digits without 0x.
 */
export function readOperation(body: BodyJson, sha256Hex: (text: string) => string): Operation | undefined {
  const [name, value] = Object.entries(body.storage ?? body.zk ?? {})[0] ?? [];
  if (name === undefined || value === undefined) {
    return undefined;
  }
  const target = targetOf(body, name, value, sha256Hex);
  return { name, value, summary: summaries[name]?.(value) ?? name, ...(target !== undefined && { target }) };
}

type Value = Operation["value"];

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const field = (value: Value): string => JSON.stringify(text(value["field"]));
const item = (value: Value): string => `item ${String(value["index"])} of the field ${field(value)}`;

const summaries: Readonly<Record<string, (value: Value) => string>> = {
  createProgram: (value) => `Creates the program ${JSON.stringify(text(value["programName"]))}`,
  writeProgram: () => "Replaces the document of",
  setField: (value) => `Sets the field ${field(value)} of`,
  setItem: (value) => `Sets ${item(value)} of`,
  appendItem: (value) => `Appends an item to the field ${field(value)} of`,
  deleteField: (value) => `Deletes the field ${field(value)} of`,
  deleteItem: (value) => `Deletes ${item(value)} of`,
  updateAccess: () => "Changes the access rule of",
  deleteProgram: () => "Deletes the program",
  addCommitment: () => "Adds a commitment to the tree:",
  spendNullifier: () => "Spends a nullifier:",
};

function targetOf(
  { sender, nonce }: BodyJson,
  name: string,
  value: Value,
  sha256Hex: (text: string) => string,
): Operation["target"] {
  if (name === "createProgram") {
    // The node derives the address of a new program the same way.
    const hashedText = addressText(sender, text(value["programName"]), BigInt(nonce), text(value["salt"]));
    return { kind: "program", name: addressOf(sha256Hex(hashedText)) };
  }
  const { storageAddress, commitment, nullifierHash } = value;
  if (typeof storageAddress === "string") {
    return { kind: "program", name: storageAddress };
  }
  if (typeof commitment === "string") {
    return { kind: "commitment", name: commitment };
  }
  return typeof nullifierHash === "string" ? { kind: "nullifier", name: nullifierHash } : undefined;
}
