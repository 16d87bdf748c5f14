/** What views are made of: links, facts, tables, lists that go on. */
import { at, button, type Content, h, say } from "./dom.js";
import { linkTo, type Route } from "./routes.js";
import { ago, short, timeOf } from "./words.js";

/** A link to what can be shown. */
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

/** The whole name is in its title, and where it leads. */
function codeLink(route: Route, name: string): HTMLElement {
  return h("a", { href: linkTo(route), title: name }, code(short(name)));
}

/** The same link with all digits of the name. */
export function wholeLink(link: HTMLElement, name: string): HTMLElement {
  link.replaceChildren(code(name));
  return link;
}

export function code(text: string): HTMLElement {
  return h("code", {}, text);
}

/** When it was, and how long ago; the latter is kept true. */
export function timeAgo(ms: number): HTMLElement {
  const made = h("time", { datetime: new Date(ms).toISOString(), title: timeOf(ms) }, ago(ms));
  made.dataset["ms"] = String(ms);
  return made;
}

/** Says of all times that are shown how long ago they are by now. */
export function renewTimes(): void {
  for (const time of document.querySelectorAll<HTMLElement>("time[data-ms]")) {
    say(time, ago(Number(time.dataset["ms"])));
  }
}

/** Names and what they are; those that are undefined are left out. */
export function facts(entries: Readonly<Record<string, Content>>): HTMLElement {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined);
  return h("dl", {}, ...shown.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** A part of a view under a heading, by whose name it is known. */
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
 * Rows of cells. Where the window is narrow each row is a card, on which `columns` name what is not the first: hence the
 * roles, which a table that is shown otherwise loses.
 */
export interface Table {
  readonly element: HTMLElement;
  /** Adds rows, at the begin or the end. */
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

/** A page of a list. */
export interface Page {
  readonly rows: readonly (readonly Content[])[];
  /** Gives the page after it; undefined for the last one. */
  readonly next?: (() => Promise<Page>) | undefined;
}

/**
 * A table that a button makes longer.
 *
 * @param empty what is said where there is nothing.
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

/** A part of a view that may fail by itself: then it is the sentence that says why. */
export async function orWhyNot(part: Promise<HTMLElement>, signal: AbortSignal): Promise<HTMLElement> {
  try {
    return await part;
  } catch (error) {
    signal.throwIfAborted();
    return h("p", { class: "bad" }, messageOf(error));
  }
}

/** Says something at the top of the page, and to who listens to it; undefined takes it away. */
export function tell(text: string | undefined): void {
  at("notice").hidden = text === undefined;
  say(at("notice"), text ?? "");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
