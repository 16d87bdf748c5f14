/** Describes the operation of a transaction as text or as elements. */
import { sha256Hex } from "../../../client/src/bytes.js";
import { type Operation, readOperation } from "../../base/describe-operation.js";
import type { AccessRule, TransactionBody } from "./responses.js";
import { accessParts } from "./access.js";
import { type Content, h } from "./dom.js";
import { documentTree, longText } from "./document-tree.js";
import { escapeInvisible, short, timeOf } from "./format.js";
import {
  code,
  commitmentLink,
  facts,
  fullOwnerLink,
  hash,
  nullifierLink,
  programLink,
  timeAndAge,
  untrusted,
} from "./parts.js";

/** Returns a label for the kind of a change, such as `Set field` for `set_field`. */
export function describeChange(kind: string): string {
  return kind.replace(/^./, (first) => first.toUpperCase()).replaceAll("_", " ");
}

/** Text for an operation that the reader may not read. */
const hiddenText = "Not shown to you";

/** Kinds of operations by their names in the API, as filters and badges name them. */
export const operationKinds: Readonly<Record<string, string>> = {
  createProgram: "Create program",
  writeProgram: "Write program",
  setField: "Set field",
  setItem: "Set item",
  appendItem: "Append item",
  deleteField: "Delete field",
  deleteItem: "Delete item",
  updateAccess: "Update access",
  deleteProgram: "Delete program",
  addCommitment: "Add commitment",
  spendNullifier: "Spend nullifier",
};
/** Kind of an operation that the reader may not read. */
export const hiddenKind = "Private";

/** Returns the kind of the operation of a transaction. */
export function kindOf(body: TransactionBody | undefined): string {
  const name = Object.keys(body?.storage ?? body?.zk ?? {})[0];
  return name === undefined ? hiddenKind : (operationKinds[name] ?? name);
}

function operationOf(body: TransactionBody | undefined): Operation | undefined {
  return body && readOperation(body, sha256Hex);
}

/** Returns the address of the program that an operation creates or changes; undefined if there is none. */
export function changedProgram(body: TransactionBody | undefined): string | undefined {
  const target = operationOf(body)?.target;
  return target?.kind === "program" ? target.name : undefined;
}

/** Returns a description as text, for CSV files; undefined if the reader may not read the operation. */
export function operationText(body: TransactionBody | undefined): string | undefined {
  const operation = operationOf(body);
  return operation && `${operation.summary}${operation.target === undefined ? "" : ` ${operation.target.name}`}`;
}

/** Returns a short description as text; `Not shown to you` if the reader may not read the operation. */
export function operationLabel(body: TransactionBody | undefined): string {
  const operation = operationOf(body);
  return operation === undefined
    ? hiddenText
    : escapeInvisible(
        `${operation.summary.slice(0, 120)} ${operation.target === undefined ? "" : short(operation.target.name)}`,
      );
}

/** Returns a description in one line; `Not shown to you` if the reader may not read the operation. */
export function operationLine(body: TransactionBody | undefined): HTMLElement {
  const operation = operationOf(body);
  return operation === undefined
    ? h("span", { class: "dim" }, hiddenText)
    : h("span", {}, untrusted(operation.summary, 300), " ", operation.target && targetLink(operation.target));
}

function targetLink({ kind, name }: NonNullable<Operation["target"]>): Content {
  switch (kind) {
    case "program":
      return programLink(name);
    case "commitment":
      return commitmentLink(name);
    case "nullifier":
      return nullifierLink(name);
  }
}

/** Returns the facts of a transaction, except its hash and its operation. */
export function bodyFacts(body: TransactionBody): Readonly<Record<string, Content>> {
  return {
    Sender: fullOwnerLink(body.sender),
    Created: timeAndAge(body.timestampMs),
    Nonce: body.nonce,
    Expires: timeOf(body.expiresMs),
    Network: hash(body.network),
  };
}

/** Returns a description and all fields of an operation. */
export function operationDetails(body: TransactionBody): HTMLElement {
  const operation = operationOf(body);
  if (operation === undefined) {
    return h("p", {}, "This page does not know the operation of this transaction.");
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
  access: "Access rule",
  field: "Field",
  index: "Index",
  commitment: "Commitment",
  nullifierHash: "Nullifier",
  root: "Root",
  proof: "Proof",
};

/** Fields that have a JSON text, which is shown as a tree. */
const jsonFields = new Set(["value", "metadata"]);

/** Returns the value of a field as an element; undefined for an empty value. */
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
    return json === undefined ? longText(binary ?? "none") : documentTree(json);
  }
  if (jsonFields.has(name) && typeof value === "string") {
    return documentTree(value);
  }
  if (typeof value !== "string") {
    return code(JSON.stringify(value));
  }
  return /^0x[0-9a-f]{64}$/.test(value) ? hash(value) : longText(value);
}
