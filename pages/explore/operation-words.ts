/** What a transaction does, in words, and all that it says of it. */
import { sha256Hex } from "../../client/src/bytes.js";
import { addressOf, addressText } from "../../src/base/signed-texts.js";
import type { AccessRule, TransactionBody } from "./answers.js";
import { accessParts } from "./access.js";
import { type Content, h } from "./dom.js";
import { documentTree } from "./document-tree.js";
import { code, facts, link, programLink } from "./parts.js";
import { short } from "./words.js";

/** An operation, by its name, with what it says. */
interface Operation {
  readonly body: TransactionBody;
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The operation of a transaction; undefined where its body is not shown, or says nothing that is known here. */
function operationOf(body: TransactionBody | undefined): Operation | undefined {
  if (body === undefined) {
    return undefined;
  }
  const [name, value] = Object.entries(body.storage ?? body.zk ?? {})[0] ?? [];
  return name === undefined ? undefined : { body, name, value: value ?? {} };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const field = ({ value }: Operation): string => JSON.stringify(text(value["field"]));
const item = ({ value }: Operation): string => `item ${String(value["index"])} of the field`;

/** What each does, to stand before the program's address. */
const sentences: Readonly<Record<string, (operation: Operation) => string>> = {
  createProgram: ({ value }) => `Makes the program ${JSON.stringify(text(value["programName"]))}`,
  writeProgram: () => "Writes the whole document of",
  setField: (operation) => `Sets the field ${field(operation)} of`,
  setItem: (operation) => `Sets ${item(operation)} ${field(operation)} of`,
  appendItem: (operation) => `Appends an item to the field ${field(operation)} of`,
  deleteField: (operation) => `Deletes the field ${field(operation)} of`,
  deleteItem: (operation) => `Deletes ${item(operation)} ${field(operation)} of`,
  updateAccess: () => "Changes who may read and write",
  deleteProgram: () => "Deletes the program",
  addCommitment: () => "Adds a commitment to the tree:",
  spendNullifier: () => "Spends a nullifier:",
};

/** What a change of a program's history did, by the name that the node gives it: `set_field`. */
export function changeWords(kind: string): string {
  return kind.replace(/^./, (first) => first.toUpperCase()).replaceAll("_", " ");
}

/** In a line; `Not shown to you` where the program that it is on may not be read. */
export function operationLine(body: TransactionBody | undefined): HTMLElement {
  const operation = operationOf(body);
  if (operation === undefined) {
    return h("span", { class: "dim" }, "Not shown to you");
  }
  const sentence = sentences[operation.name]?.(operation) ?? operation.name;
  return h("span", {}, sentence, " ", targetOf(operation));
}

function targetOf({ body, name, value }: Operation): Content {
  if (name === "createProgram") {
    // As the node works it out.
    const named = addressText(body.sender, text(value["programName"]), BigInt(body.nonce), text(value["salt"]));
    return programLink(addressOf(sha256Hex(named)));
  }
  const { storageAddress, commitment, nullifierHash } = value;
  if (typeof storageAddress === "string") {
    return programLink(storageAddress);
  }
  if (typeof commitment === "string") {
    return link({ kind: "tree", commitment }, short(commitment));
  }
  return typeof nullifierHash === "string"
    ? link({ kind: "nullifier", hash: nullifierHash }, short(nullifierHash))
    : undefined;
}

/** All that it says. */
export function operationParts(body: TransactionBody): HTMLElement {
  const operation = operationOf(body);
  if (operation === undefined) {
    return h("p", {}, "It does nothing that this page knows.");
  }
  const entries = Object.entries(operation.value).map(([name, value]) => [labels[name] ?? name, show(name, value)]);
  return h("div", {}, h("p", {}, operationLine(body)), facts(Object.fromEntries(entries) as Record<string, Content>));
}

const labels: Readonly<Record<string, string>> = {
  storageAddress: "Program",
  programName: "Name",
  salt: "Salt",
  data: "Document",
  value: "Value",
  metadata: "Metadata",
  access: "Who may read",
  field: "Field",
  index: "Index",
  commitment: "Commitment",
  nullifierHash: "Nullifier",
  root: "Root",
  proof: "Proof",
};

/** Texts of JSON are shown as documents. */
const jsonTexts = new Set(["value", "metadata"]);

function show(name: string, value: unknown): Content {
  if (value === null || value === "") {
    return undefined;
  }
  if (name === "storageAddress" && typeof value === "string") {
    return programLink(value);
  }
  if (name === "access") {
    return accessParts(value as AccessRule);
  }
  if (name === "data") {
    const { json, binary } = value as { readonly json?: string; readonly binary?: string };
    return json === undefined ? code(binary ?? "none") : documentTree(json);
  }
  if (jsonTexts.has(name) && typeof value === "string") {
    return documentTree(value);
  }
  return code(typeof value === "string" ? value : JSON.stringify(value));
}
