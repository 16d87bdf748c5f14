/**
 * Lists of the latest items. New rows are added at the top, and as many are removed at the end, so that the height of
 * the page does not change.
 */
import type { Content } from "./dom.js";
import { table } from "./parts.js";

/** List of at most `maxRows` rows. */
export interface LiveList<Item> {
  readonly element: HTMLElement;
  /** Shows these items, latest first. Rows of items that are already shown keep their elements and the focus. */
  show(items: readonly Item[]): void;
}

/** Settings of a live list. */
export interface LiveListSettings<Item> {
  readonly label: string;
  readonly columns: readonly string[];
  readonly maxRows: number;
  /** True if all cells are short, so that a row fits a line of a phone. */
  readonly isShort?: boolean;
  /** Returns a text that differs for each row, and changes with its content. */
  readonly keyOf: (item: Item) => string;
  readonly rowOf: (item: Item) => Content[];
}

export function liveList<Item>(settings: LiveListSettings<Item>): LiveList<Item> {
  const { label, columns, maxRows, isShort = false, keyOf, rowOf } = settings;
  const { element, add, body } = table(label, columns);
  element.classList.add("live", ...(isShort ? ["rows"] : []));
  let shown: string[] = [];
  return {
    element,
    show(items) {
      const latest = items.slice(0, maxRows);
      const keys = latest.map(keyOf);
      const added = latest.filter((_, i) => !shown.includes(keys[i]!));
      const removed = [...body.children].filter((_, i) => !keys.includes(shown[i]!));
      removed.forEach((row) => row.remove());
      add(added.map(rowOf), "first");
      shown = [...added.map(keyOf), ...shown.filter((key) => keys.includes(key))];
    },
  };
}
