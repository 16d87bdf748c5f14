/** Rebuilds earlier versions of a program from its transactions, and compares two of them. */
import {
  appendItem,
  deleteItem,
  deleteMember,
  eachMember,
  itemsOf,
  setItem,
  setMember,
} from "../../../storage/documents/document.js";
import { typeOfJson } from "../../../storage/documents/json-text.js";
import type { AccessRule } from "../responses.js";
import { partsOf } from "../document-tree.js";

/** Program after one of its changes. */
export interface Version {
  /** JSON text of the document. Binary data is base64 in a JSON string; undefined for an empty program. */
  readonly data: string | undefined;
  /** JSON text of the access rule; undefined until an operation that sets it was replayed. */
  readonly access: string | undefined;
}

/** Operation of a transaction: its name in the API, and its fields. */
export interface Change {
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Returns true for operations that replace the complete data. */
export function isComplete(kind: string): boolean {
  return kind === "create_program" || kind === "write_program";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Applies an operation to a version. Throws if the operation is invalid; operations in blocks are valid. */
export function applyChange(before: Version, { name, value }: Change): Version {
  const { data, access } = before;
  const field = textOf(value["field"]);
  const text = textOf(value["value"]).trim();
  switch (name) {
    case "createProgram":
      return { data: dataOf(value["data"]), access: JSON.stringify(value["access"] ?? ownerOnly) };
    case "writeProgram":
      return { data: dataOf(value["data"]), access };
    case "setField":
      return { data: setMember(data ?? "{}", field, text), access };
    case "deleteField":
      return { data: requireText(deleteMember(requireText(data), field)), access };
    case "setItem":
    case "appendItem":
    case "deleteItem":
      return { data: changeArray(requireText(data), field, { name, value }, text), access };
    case "updateAccess":
      return { data, access: JSON.stringify(value["access"]) };
    default:
      throw new Error(`This page does not know the operation ${name}.`);
  }
}

const ownerOnly: AccessRule = { mode: "owner", allowed: [], blacklisted: [], groups: {} };

function dataOf(data: unknown): string | undefined {
  const { json, binary } = (data ?? {}) as { readonly json?: string; readonly binary?: string };
  return json ?? (binary === undefined ? undefined : JSON.stringify(binary));
}

function changeArray(data: string, field: string, { name, value }: Change, text: string): string {
  const member = [...eachMember(data)].find((candidate) => candidate.name === field);
  const array = requireText(member && data.slice(member.valueStart, member.valueEnd));
  const items = itemsOf(array);
  const index = Number(value["index"] ?? 0);
  const changed =
    name === "appendItem"
      ? appendItem(array, items, text)
      : name === "setItem"
        ? setItem(array, items, index, text)
        : deleteItem(array, items, index);
  return setMember(data, field, changed);
}

function requireText(text: string | undefined): string {
  if (text === undefined) {
    throw new Error("An earlier change is missing.");
  }
  return text;
}

/** Value that differs between two versions. */
export interface Difference {
  /** Path to the value, such as `list[0].name`; empty for the complete document. */
  readonly path: string;
  /** JSON texts; undefined if the version does not have the value. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Yields the values that differ between two JSON texts. Compares members of objects by name, and items by index. */
export function* differences(
  before: string | undefined,
  after: string | undefined,
  path = "",
): Generator<Difference, void> {
  if (before === after) {
    return;
  }
  const [type, newType] = [before, after].map((text) => (text === undefined ? undefined : typeOfJson(text)));
  if (before === undefined || after === undefined || type !== newType || (type !== "object" && type !== "array")) {
    if (before?.trim() !== after?.trim()) {
      yield { path, before, after };
    }
    return;
  }
  const [older, newer] = [before, after].map(
    (text) => new Map(partsOf(text).map(({ name, text }) => [name, text])),
  ) as [Map<string, string>, Map<string, string>];
  for (const name of new Set([...older.keys(), ...newer.keys()])) {
    yield* differences(older.get(name), newer.get(name), pathTo(path, name, type));
  }
}

function pathTo(path: string, name: string, type: string): string {
  if (type === "array") {
    return `${path}[${name}]`;
  }
  const step = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name) ? name : JSON.stringify(name);
  return path === "" ? step : `${path}.${step}`;
}
