/** Parts of views: links, facts, tables, lists with pages. */
import { copyable } from "./copy.js";
import { at, type Content, h, say } from "./dom.js";
import { linkTo, type Route } from "./routes.js";
import { ago, cut, short, timeOf, visible } from "./words.js";

/** Returns a link to a view. */
export function link(
  route: Route,
  text: string,
  attributes: { readonly class?: string; readonly title?: string } = {},
): HTMLElement {
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

export function nullifierLink(hash: string): HTMLElement {
  return codeLink({ kind: "nullifier", hash }, hash);
}

export function commitmentLink(commitment: string): HTMLElement {
  return codeLink({ kind: "tree", commitment }, commitment);
}

/** Returns a link with a shortened name, and a button that copies the full name; the title has it, too. */
function codeLink(route: Route, name: string): HTMLElement {
  return copyable(h("a", { href: linkTo(route), title: name }, code(short(name))), name);
}

/** Returns the link with all digits of the name. */
export function wholeLink(linked: HTMLElement, name: string): HTMLElement {
  linked.querySelector("a")!.replaceChildren(code(name));
  return linked;
}

/** Returns a link to the block before another one, by its hash. */
export function blockHashLink(hash: string): HTMLElement {
  return copyable(link({ kind: "block", name: hash }, "", { title: hash }), hash);
}

/** Returns a hash or key with a button that copies it. */
export function hash(text: string): HTMLElement {
  return copyable(code(text), text);
}

/** Returns the first and last digits of a hash or key, with a button that copies it. */
export function shortHash(text: string): HTMLElement {
  return copyable(h("code", { title: text }, short(text)), text);
}

/** Returns a text from a document, a peer or a log: its direction ends with it, and what cannot be seen is written out. */
export function given(text: string, maxLength = 200): HTMLElement {
  return h("bdi", {}, cut(visible(text), maxLength));
}

/** Returns a link to a program by the name that its owner chose. */
export function namedProgramLink(address: string, name: string): HTMLElement {
  return h("a", { href: linkTo({ kind: "program", address }) }, given(name, 100));
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
