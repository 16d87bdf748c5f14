/** Shows JSON texts as collapsible trees. Numbers and the order of members remain as written. */
import { eachMember, itemsOf } from "../../storage/documents/document.js";
import { eachField } from "../../storage/documents/document-parts.js";
import { typeOfJson } from "../../storage/documents/json-text.js";
import { button, h } from "./dom.js";
import { untrusted } from "./parts.js";
import { counted, truncate } from "./format.js";

/** Returns the JSON text of a member of an object, in which numbers keep all digits. */
export function memberOf(text: string, name: string): string {
  return [...eachField(text)].find((field) => field.name === name)!.value;
}

/** Member of an object or item of an array, with its name or index and its JSON text. */
export interface Part {
  readonly name: string;
  readonly text: string;
}

/** Returns the parts of an object or an array; none for any other value. */
export function partsOf(text: string): Part[] {
  switch (typeOfJson(text)) {
    case "object":
      return [...eachMember(text)].map(({ name, valueStart, valueEnd }) => ({
        name,
        text: text.slice(valueStart, valueEnd),
      }));
    case "array":
      return itemsOf(text).map(({ start, end }, i) => ({ name: String(i), text: text.slice(start, end) }));
    default:
      return [];
  }
}

/** Number of parts that are shown at first, and that each press of the button adds. */
const pageSize = 100;
/** Maximum length in characters of a text that is shown completely at first. */
const maxShownLength = 2_000;

/** Returns a JSON value as a tree. Elements of nested values are created when the reader opens the value. */
export function documentTree(text: string, isOpen = true): HTMLElement {
  const type = typeOfJson(text);
  if (type !== "object" && type !== "array") {
    return longText(text.trim(), type);
  }
  const parts = partsOf(text);
  const summary = type === "object" ? counted(parts.length, "field") : counted(parts.length, "item");
  if (parts.length === 0) {
    return h("span", { class: "dim" }, summary);
  }
  const list = h("ul", { class: "tree" });
  const details = h("details", { open: isOpen }, h("summary", {}, summary), list);
  const show = (): void => {
    if (details.open && list.childElementCount === 0) {
      showParts(list, parts, 0);
    }
  };
  details.addEventListener("toggle", show);
  show();
  return details;
}

function showParts(list: HTMLElement, parts: readonly Part[], from: number): void {
  const shown = parts.slice(from, from + pageSize);
  list.append(
    ...shown.map(({ name, text }) =>
      h("li", {}, h("span", { class: "name" }, name === "" ? '""' : untrusted(name)), ": ", documentTree(text, false)),
    ),
  );
  const remaining = parts.length - from - shown.length;
  if (remaining > 0) {
    const more = button(`Show ${Math.min(remaining, pageSize)} of ${remaining} more`, {}, () => {
      item.remove();
      showParts(list, parts, from + pageSize);
    });
    const item = h("li", {}, more);
    list.append(item);
  }
}

/** Returns a text as code. A long text is shortened, with a button that shows all of it. */
export function longText(text: string, className?: string): HTMLElement {
  if (text.length <= maxShownLength) {
    return h("code", { class: className }, text);
  }
  const shown = h("code", { class: className }, truncate(text, maxShownLength));
  const all = button(`Show all ${text.length} characters`, {}, () => {
    shown.textContent = text;
    all.remove();
  });
  return h("span", {}, shown, " ", all);
}
