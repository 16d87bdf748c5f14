/** Elements that views share: links, lists of facts, sections, tables, messages. */
import { copyable } from "./copy.js";
import { button, byId, type Content, h, setText } from "./dom.js";
import { type ItemView, linkTo, type Route } from "./routes.js";
import { ago, escapeInvisible, short, timeOf, truncate } from "./format.js";
import type { Session } from "./session.js";

/** Returns a link to a view. */
export function link(route: Route, text: string, title?: string): HTMLElement {
  return h("a", { href: linkTo(route), title }, text);
}

export function blockLink(number: number): HTMLElement {
  return link({ kind: "block", name: String(number) }, String(number));
}

export function transactionLink(hash: string): HTMLElement {
  return codeLink("transaction", hash);
}

export function programLink(address: string): HTMLElement {
  return codeLink("program", address);
}

export function ownerLink(key: string): HTMLElement {
  return codeLink("owner", key);
}

/** Returns a link to an owner with all digits of the key. */
export function fullOwnerLink(key: string): HTMLElement {
  return codeLink("owner", key, allDigits(key));
}

/** Returns a link to a block with all digits of its hash. */
export function fullBlockLink(hash: string): HTMLElement {
  return codeLink("block", hash, allDigits(hash));
}

export function nullifierLink(hash: string): HTMLElement {
  return codeLink("nullifier", hash);
}

export function commitmentLink(commitment: string): HTMLElement {
  return codeLink("tree", commitment);
}

/**
 * Returns a link with a text, by default the shortened name. A button copies the full name, which is also the title.
 */
function codeLink(kind: ItemView, name: string, content = code(short(name))): HTMLElement {
  return copyable(h("a", { href: linkTo({ kind, name }), title: name }, content), name);
}

/** Returns a hash or key with a button that copies it. */
export function hash(text: string): HTMLElement {
  return copyable(allDigits(text), text);
}

/** Returns a hash or key in one line. A window that is too narrow for it shows its first and last digits. */
function allDigits(text: string): HTMLElement {
  return h("code", { class: "digits", "data-short": short(text) }, text);
}

/** Returns a short word in a frame, such as a kind or a state. */
export function tag(text: string, className?: string): HTMLElement {
  return h("span", { class: className === undefined ? "tag" : `tag ${className}` }, text);
}

/** Returns the first and last digits of a hash or key, with a button that copies it. */
export function shortHash(text: string): HTMLElement {
  return copyable(h("code", { title: text }, short(text)), text);
}

/**
 * Returns a text from a document, a peer or a log. `<bdi>` isolates its writing direction from the text around it, and
 * invisible characters are escaped.
 */
export function untrusted(text: string, maxLength = 200): HTMLElement {
  return h("bdi", {}, truncate(escapeInvisible(text), maxLength));
}

/** Returns a link to a program by the name that its owner chose. */
export function namedProgramLink(address: string, name: string): HTMLElement {
  return h("a", { href: linkTo({ kind: "program", name: address }) }, untrusted(name, 100));
}

export function code(text: string): HTMLElement {
  return h("code", {}, text);
}

/** Returns the age of a time, with the time as title. `updateTimes` updates the age. */
export function timeAgo(ms: number): HTMLElement {
  return h("time", { datetime: new Date(ms).toISOString(), title: timeOf(ms), "data-ms": ms }, ago(ms));
}

/** Returns the age of a time, and the time. A line may break between them, but not inside. */
export function timeAndAge(ms: number): HTMLElement {
  return h("span", { class: "times" }, timeAgo(ms), " ", h("span", { class: "dim" }, timeOf(ms)));
}

/** Updates the ages of all shown times. */
export function updateTimes(): void {
  for (const time of document.querySelectorAll<HTMLElement>("time[data-ms]")) {
    setText(time, ago(Number(time.dataset["ms"])));
  }
}

/** Returns a definition list of names and values. Entries with an undefined value are omitted. */
export function facts(entries: Readonly<Record<string, Content>>): HTMLElement {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined);
  return h("dl", {}, ...shown.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Returns a row of numbers with their labels. */
export function tiles(entries: Readonly<Record<string, Content>>): HTMLElement {
  return h(
    "dl",
    { class: "tiles" },
    ...Object.entries(entries).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Returns a section of a view. Its heading is also its label for screen readers. */
export function section(title: string, ...contents: readonly Content[]): HTMLElement {
  return h("section", { "aria-label": title }, h("h2", {}, title), ...contents);
}

export function note(text: string): HTMLElement {
  return h("p", { class: "dim" }, text);
}

/**
 * Table. In a narrow window, CSS shows each row as a card, on which the names of the columns label all cells but the
 * first. ARIA roles are explicit, since a table loses its roles when CSS changes its `display`.
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
  const add: Table["add"] = (added, where = "last") =>
    body[where === "first" ? "prepend" : "append"](...added.map(rowOf));
  add(rows);
  return { element, body, add };
}

/** Returns a part of a view, or its error message if it fails. Rejects only if the signal is aborted. */
export async function orError(part: Promise<HTMLElement>, signal: AbortSignal): Promise<HTMLElement> {
  try {
    return await part;
  } catch (error) {
    signal.throwIfAborted();
    return h("p", { class: "bad" }, messageOf(error));
  }
}

/** Offers to sign in, or says which key is signed in and does not suffice. */
export function signInHint({ publicKey }: Pick<Session, "publicKey">, signIn: () => void): HTMLElement {
  return publicKey === undefined
    ? h("p", {}, button("Sign in with a key", {}, signIn))
    : h("p", {}, "The key that is signed in may not read it: ", ownerLink(publicKey));
}

/** Shows a message at the top of the page, which screen readers announce. Undefined removes the message. */
export function showNotice(text: string | undefined): void {
  byId("notice").hidden = text === undefined;
  setText(byId("notice"), text ?? "");
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
