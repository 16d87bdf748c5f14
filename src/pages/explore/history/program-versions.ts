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
import type { AccessRule } from "../answers.js";
import { partsOf } from "../document-tree.js";

/** Program after one of its changes. */
export interface Version {
  /** JSON text; base64 in a JSON string for bytes; undefined for an empty program. */
  readonly data: string | undefined;
  /** JSON text of the access rule; undefined before a rule was seen. */
  readonly access: string | undefined;
}

/** Operation of a transaction: its name in the API, and its fields. */
export interface Change {
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Returns true for an operation after which nothing of the data before it is left. */
export function isComplete(kind: string): boolean {
  return kind === "create_program" || kind === "write_program";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the version after an operation. Throws if the operation does not fit, which no operation of a block does. */
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
      return { data: deleteMember(need(data), field) ?? need(undefined), access };
    case "setItem":
    case "appendItem":
    case "deleteItem":
      return { data: changeArray(need(data), field, { name, value }, text), access };
    case "updateAccess":
      return { data, access: JSON.stringify(value["access"]) };
    default:
      throw new Error(`This page does not know the operation ${name}.`);
  }
}

const ownerOnly: AccessRule = { mode: "owner", allowed: [], blacklisted: [], groups: {} };

function dataOf(given: unknown): string | undefined {
  const { json, binary } = (given ?? {}) as { readonly json?: string; readonly binary?: string };
  return json ?? (binary === undefined ? undefined : JSON.stringify(binary));
}

function changeArray(data: string, field: string, { name, value }: Change, text: string): string {
  const member = [...eachMember(data)].find((one) => one.name === field);
  const array = need(member && data.slice(member.valueStart, member.valueEnd));
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

function need(text: string | undefined): string {
  if (text === undefined) {
    throw new Error("An earlier change is missing.");
  }
  return text;
}

/** Difference of one value. */
export interface Difference {
  /** Path to the value, such as `list[0].name`; empty for the complete document. */
  readonly path: string;
  /** JSON texts; undefined where there is no value. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Yields the values that differ between two JSON texts. Objects are compared by names, arrays by positions. */
export function* differences(
  before: string | undefined,
  after: string | undefined,
  path = "",
): Generator<Difference, void> {
  if (before === after) {
    return;
  }
  const [type, other] = [before, after].map((text) => (text === undefined ? undefined : typeOfJson(text)));
  if (before === undefined || after === undefined || type !== other || (type !== "object" && type !== "array")) {
    if (before?.trim() !== after?.trim()) {
      yield { path, before, after };
    }
    return;
  }
  const [olds, news] = [before, after].map((text) => new Map(partsOf(text).map(({ name, text }) => [name, text]))) as [
    Map<string, string>,
    Map<string, string>,
  ];
  for (const name of new Set([...olds.keys(), ...news.keys()])) {
    yield* differences(olds.get(name), news.get(name), pathTo(path, name, type));
  }
}

function pathTo(path: string, name: string, type: string): string {
  if (type === "array") {
    return `${path}[${name}]`;
  }
  const step = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name) ? name : JSON.stringify(name);
  return path === "" ? step : `${path}.${step}`;
}
