/** Describes the operation of a transaction. */
import { sha256Hex } from "../../../client/src/bytes.js";
import { type OperationTarget, readOperation } from "../../base/describe-operation.js";
import type { AccessRule, TransactionBody } from "./answers.js";
import { accessParts } from "./access.js";
import { type Content, h } from "./dom.js";
import { documentTree, longText } from "./document-tree.js";
import { code, commitmentLink, facts, given, hash, nullifierLink, programLink } from "./parts.js";

/** Describes a change of a program's history by the name that the node uses, such as `set_field`. */
export function changeWords(kind: string): string {
  return kind.replace(/^./, (first) => first.toUpperCase()).replaceAll("_", " ");
}

/** Returns the address of the program that an operation creates or changes; undefined if there is none. */
export function changedProgram(body: TransactionBody | undefined): string | undefined {
  const target = body && readOperation(body, sha256Hex)?.target;
  return target?.kind === "program" ? target.name : undefined;
}

/** Returns the same description as a text, for a file. */
export function operationText(body: TransactionBody | undefined): string | undefined {
  const operation = body && readOperation(body, sha256Hex);
  return operation && `${operation.summary}${operation.target === undefined ? "" : ` ${operation.target.name}`}`;
}

/** Returns a description in one line; `Not shown to you` if the program may not be read. */
export function operationLine(body: TransactionBody | undefined): HTMLElement {
  const operation = body && readOperation(body, sha256Hex);
  return operation === undefined
    ? h("span", { class: "dim" }, "Not shown to you")
    : h("span", {}, given(operation.summary, 300), " ", operation.target && targetLink(operation.target));
}

function targetLink({ kind, name }: OperationTarget): Content {
  switch (kind) {
    case "program":
      return programLink(name);
    case "commitment":
      return commitmentLink(name);
    case "nullifier":
      return nullifierLink(name);
  }
}

/** Returns all parts of an operation. */
export function operationParts(body: TransactionBody): HTMLElement {
  const operation = readOperation(body, sha256Hex);
  if (operation === undefined) {
    return h("p", {}, "This page does not know its operation.");
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

/** Members whose JSON text is shown as a document. */
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
    return json === undefined ? longText(binary ?? "none") : documentTree(json);
  }
  if (jsonTexts.has(name) && typeof value === "string") {
    return documentTree(value);
  }
  if (typeof value !== "string") {
    return code(JSON.stringify(value));
  }
  return /^0x[0-9a-f]{64}$/.test(value) ? hash(value) : longText(value);
}
