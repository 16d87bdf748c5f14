/** Shows JSON texts as trees that open and close, with numbers and the order of members as written. */
import { eachMember, itemsOf } from "../../storage/documents/document.js";
import { typeOfJson } from "../../storage/documents/json-text.js";
import { button, h } from "./dom.js";
import { given } from "./parts.js";
import { counted, cut } from "./words.js";

/** Part of a document, with its name or index. */
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

/** Number of parts shown at first, and added with each press for more. */
const shownAtOnce = 100;
/** Length in characters above which a text is shortened until it is opened. */
const maxShownLength = 2_000;

/** Returns a value as a tree. Its parts are created when it is opened. */
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
  const made = h("details", { open: isOpen }, h("summary", {}, summary), list);
  const show = (): void => {
    if (made.open && list.childElementCount === 0) {
      showParts(list, parts, 0);
    }
  };
  made.addEventListener("toggle", show);
  show();
  return made;
}

function showParts(list: HTMLElement, parts: readonly Part[], from: number): void {
  const shown = parts.slice(from, from + shownAtOnce);
  list.append(
    ...shown.map(({ name, text }) =>
      h("li", {}, h("span", { class: "name" }, name === "" ? '""' : given(name)), ": ", documentTree(text, false)),
    ),
  );
  const left = parts.length - from - shown.length;
  if (left > 0) {
    const more = h("button", { type: "button" }, `Show ${Math.min(left, shownAtOnce)} of ${left} more`);
    const item = h("li", {}, more);
    more.addEventListener("click", () => {
      item.remove();
      showParts(list, parts, from + shownAtOnce);
    });
    list.append(item);
  }
}

/** Returns a text that is shortened until a reader asks for all of it. */
export function longText(text: string, className?: string): HTMLElement {
  if (text.length <= maxShownLength) {
    return h("code", { class: className }, text);
  }
  const shown = h("code", { class: className }, cut(text, maxShownLength));
  const all = button(`Show all ${text.length} characters`, {}, () => {
    shown.textContent = text;
    all.remove();
  });
  return h("span", {}, shown, " ", all);
}
