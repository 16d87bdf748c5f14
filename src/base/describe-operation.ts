/**
 * What a transaction does, in words, made of the JSON that nodes give of it. For pages and for the command line, so
 * nothing here needs Node.js; who hashes does it with what there is.
 */
import { addressOf, addressText } from "./crypto/signing-payloads.js";

/** Operations by their names; there is one. */
type OperationJson = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A TransactionBody as JSON has it, as far as it is told in words. */
export interface BodyJson {
  readonly sender: string;
  readonly nonce: number;
  readonly storage?: OperationJson;
  readonly zk?: OperationJson;
}

/** What a transaction does. */
export interface Operation {
  /** As the contract has it: `setField`. */
  readonly name: string;
  /** All that it says. */
  readonly value: Readonly<Record<string, unknown>>;
  /** To stand before what it is about: `Sets the field "title" of`; its name, where no words are known for it. */
  readonly sentence: string;
  /** What it is about. */
  readonly target?: OperationTarget;
}

/** What an operation is about: the address of a program, or the hash of something. */
export interface OperationTarget {
  readonly kind: "program" | "commitment" | "nullifier";
  readonly name: string;
}

/**
 * The operation of a transaction; undefined where it says nothing that is known here.
 *
 * @param sha256Hex hex digits of the SHA-256 of a text, without 0x.
 */
export function readOperation(body: BodyJson, sha256Hex: (text: string) => string): Operation | undefined {
  const [name, value] = Object.entries(body.storage ?? body.zk ?? {})[0] ?? [];
  if (name === undefined || value === undefined) {
    return undefined;
  }
  const target = targetOf(body, name, value, sha256Hex);
  return { name, value, sentence: sentences[name]?.(value) ?? name, ...(target !== undefined && { target }) };
}

type Value = Operation["value"];

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const field = (value: Value): string => JSON.stringify(text(value["field"]));
const item = (value: Value): string => `item ${String(value["index"])} of the field ${field(value)}`;

const sentences: Readonly<Record<string, (value: Value) => string>> = {
  createProgram: (value) => `Makes the program ${JSON.stringify(text(value["programName"]))}`,
  writeProgram: () => "Writes the whole document of",
  setField: (value) => `Sets the field ${field(value)} of`,
  setItem: (value) => `Sets ${item(value)} of`,
  appendItem: (value) => `Appends an item to the field ${field(value)} of`,
  deleteField: (value) => `Deletes the field ${field(value)} of`,
  deleteItem: (value) => `Deletes ${item(value)} of`,
  updateAccess: () => "Changes who may read and write",
  deleteProgram: () => "Deletes the program",
  addCommitment: () => "Adds a commitment to the tree:",
  spendNullifier: () => "Spends a nullifier:",
};

function targetOf(
  { sender, nonce }: BodyJson,
  name: string,
  value: Value,
  sha256Hex: (text: string) => string,
): OperationTarget | undefined {
  if (name === "createProgram") {
    // As the node works it out.
    const named = addressText(sender, text(value["programName"]), BigInt(nonce), text(value["salt"]));
    return { kind: "program", name: addressOf(sha256Hex(named)) };
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
