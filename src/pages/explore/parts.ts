/** Parts of views: links, facts, tables, lists with pages. */
import { at, button, type Content, h, say } from "./dom.js";
import { linkTo, type Route } from "./routes.js";
import { ago, short, timeOf } from "./words.js";

/** Returns a link to a view. */
export function link(route: Route, text: string, attributes: { readonly class?: string } = {}): HTMLElement {
  return h("a", { href: linkTo(route), ...attributes }, text);
}

export function blockLink(number: number): HTMLElement {
  return link({ kind: "block", name: String(number) }, String(number));
}

export function transactionLink(hash: string): HTMLElement {
  return codeLink({ kind: "transaction", hash }, hash);
}

export function programLink(address: string): HTMLElement {
  return codeLink({ kind: "program", address }, address);
}

export function ownerLink(key: string): HTMLElement {
  return codeLink({ kind: "owner", key }, key);
}

/** Returns a link with a shortened name; the title has the full name. */
function codeLink(route: Route, name: string): HTMLElement {
  return h("a", { href: linkTo(route), title: name }, code(short(name)));
}

/** Returns the link with all digits of the name. */
export function wholeLink(link: HTMLElement, name: string): HTMLElement {
  link.replaceChildren(code(name));
  return link;
}

export function code(text: string): HTMLElement {
  return h("code", {}, text);
}

/** Returns a time and its age. The age is updated. */
export function timeAgo(ms: number): HTMLElement {
  const made = h("time", { datetime: new Date(ms).toISOString(), title: timeOf(ms) }, ago(ms));
  made.dataset["ms"] = String(ms);
  return made;
}

/** Updates the ages of all shown times. */
export function renewTimes(): void {
  for (const time of document.querySelectorAll<HTMLElement>("time[data-ms]")) {
    say(time, ago(Number(time.dataset["ms"])));
  }
}

/** Returns a list of names and values, without undefined values. */
export function facts(entries: Readonly<Record<string, Content>>): HTMLElement {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined);
  return h("dl", {}, ...shown.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Returns a part of a view under a heading, which names it for screen readers. */
export function section(title: string, ...contents: readonly Content[]): HTMLElement {
  const heading = h("h2", {}, title);
  const made = h("section", {}, heading, ...contents);
  made.setAttribute("aria-label", title);
  return made;
}

export function note(text: string): HTMLElement {
  return h("p", { class: "dim" }, text);
}

/**
 * Table. In a narrow window each row is a card, on which `columns` label all cells but the first. The roles are explicit,
 * since a table with another display loses them.
 */
export interface Table {
  readonly element: HTMLElement;
  /** Adds rows at the beginning or the end. */
  readonly add: (rows: readonly (readonly Content[])[], where?: "first" | "last") => void;
  readonly body: HTMLElement;
}

export function table(label: string, columns: readonly string[], rows: readonly (readonly Content[])[] = []): Table {
  const heads = columns.map((name) => h("th", { role: "columnheader", scope: "col" }, name));
  const body = h("tbody", { role: "rowgroup" });
  const element = h(
    "div",
    { class: "frame" },
    h(
      "table",
      { role: "table", "aria-label": label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
      body,
    ),
  );
  const rowOf = (cells: readonly Content[]): HTMLElement =>
    h(
      "tr",
      { role: "row" },
      ...cells.map((cell, i) => h("td", { role: "cell", "data-name": i === 0 ? undefined : columns[i] }, cell)),
    );
  const made: Table = {
    element,
    body,
    add: (added, where = "last") => body[where === "first" ? "prepend" : "append"](...added.map(rowOf)),
  };
  made.add(rows);
  return made;
}

/** Page of a list. */
export interface Page {
  readonly rows: readonly (readonly Content[])[];
  /** Returns the next page; undefined for the last page. */
  readonly next?: (() => Promise<Page>) | undefined;
}

/**
 * Returns a table with a button for the next page.
 *
 * @param empty text for a list without rows.
 */
export function pagedTable(label: string, columns: readonly string[], first: Page, empty: string): HTMLElement {
  if (first.rows.length === 0) {
    return note(empty);
  }
  const { element, add } = table(label, columns, first.rows);
  const more = h("p");
  const offer = ({ next }: Page): void => {
    more.replaceChildren(
      ...(next === undefined
        ? []
        : [
            button("Show more", { "aria-label": `Show more: ${label}` }, async () => {
              try {
                const page = await next();
                add(page.rows);
                offer(page);
              } catch (error) {
                tell(messageOf(error));
              }
            }),
          ]),
    );
  };
  offer(first);
  return h("div", {}, element, more);
}

/** Returns a part of a view; if it fails, its error message. */
export async function orWhyNot(part: Promise<HTMLElement>, signal: AbortSignal): Promise<HTMLElement> {
  try {
    return await part;
  } catch (error) {
    signal.throwIfAborted();
    return h("p", { class: "bad" }, messageOf(error));
  }
}

/** Shows a message at the top of the page and announces it; undefined removes it. */
export function tell(text: string | undefined): void {
  at("notice").hidden = text === undefined;
  say(at("notice"), text ?? "");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
