/** Lists of the latest things. New rows come at the top, and as many go at the end, so that the page does not jump. */
import type { Content } from "./dom.js";
import { table } from "./parts.js";

/** List of at most that many rows. */
export interface LiveList<Item> {
  readonly element: HTMLElement;
  /** Shows these items, latest first. Rows of items that are shown already stay, and so does the focus in them. */
  show(items: readonly Item[]): void;
}

/** Settings of a list. */
export interface LiveListSettings<Item> {
  readonly label: string;
  readonly columns: readonly string[];
  readonly maxRows: number;
  /** Returns a text that differs for each row, and changes with its content. */
  readonly keyOf: (item: Item) => string;
  readonly rowOf: (item: Item) => Content[];
}

export function liveList<Item>({ label, columns, maxRows, keyOf, rowOf }: LiveListSettings<Item>): LiveList<Item> {
  const { element, add, body } = table(label, columns);
  element.classList.add("live");
  let shown: string[] = [];
  return {
    element,
    show(items) {
      const kept = items.slice(0, maxRows);
      const keys = kept.map(keyOf);
      const isNew = kept.filter((_, i) => !shown.includes(keys[i]!));
      shown.forEach((key, i) => {
        (body.children[i] as HTMLElement).hidden = !keys.includes(key);
      });
      for (const row of [...body.children].filter((one) => (one as HTMLElement).hidden)) {
        row.remove();
      }
      add(isNew.map(rowOf), "first");
      const left = shown.filter((key) => keys.includes(key));
      shown = [...isNew.map(keyOf), ...left];
    },
  };
}
