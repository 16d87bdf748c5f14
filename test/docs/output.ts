/**
 * Compares the output that a document shows with the one that came.
 *
 * `…` stands for anything within a line, a line of `...` for any lines. Keys, hashes, signatures and addresses of programs
 * are others on each machine: the first time one is shown it may be any, afterwards it is the one that came then, also in
 * commands, and no two are one. Timestamps may be any. All else is compared letter by letter.
 */
import { withoutEmptyEnd } from "./document.js";

/** Shown value → the value that came in its place. */
export type Names = ReadonlyMap<string, string>;

/** Names that are the same wherever they stand in a document. */
const named = ["0x[0-9a-f]{128}", "0x[0-9a-f]{64}", "stor-[0-9a-f]{40}"];
/** What is another one each time: milliseconds since 1970, ISO 8601, a key cut short, a number that is said to vary. */
const passing = ["1[0-9]{12}", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "0x[0-9a-f]{8}…[0-9a-f]{4}"];
const number = "[0-9]+(?:\\.[0-9]+)?";
const boundary = { before: "(?<![\\w.-])", after: "(?![\\w-]|\\.[0-9])" };

const isName = new RegExp(`^(?:${named.join("|")})$`);
const anyName = new RegExp(`(?<!\\w)(?:${named.join("|")})(?!\\w)`, "g");

/** Puts the names that came into a text of the document, such as a command. */
export function withNames(text: string, names: Names): string {
  return text.replace(anyName, (name) => names.get(name) ?? name);
}

/** The names of a command that are not known from an output stand for themselves. */
export function namesOf(command: string, names: Names): Names {
  return new Map([...(command.match(anyName) ?? []).map((name) => [name, name] as const), ...names]);
}

/**
 * Matches what came with what is shown.
 *
 * @param varies numbers of what is shown that may be any number.
 * @returns all names known now; undefined when it does not match.
 */
export function matchOutput(
  shown: readonly string[],
  came: string,
  names: Names,
  varies: readonly string[] = [],
): Names | undefined {
  return matchLines(shown, linesOf(came), names, varies);
}

/** The lines of an output, as they would be shown. */
export function linesOf(came: string): string[] {
  return withoutEmptyEnd(came.replaceAll("\r", "").split("\n")).map((line) => line.trimEnd());
}

function matchLines(
  shown: readonly string[],
  came: readonly string[],
  names: Names,
  varies: readonly string[],
): Names | undefined {
  const [first, ...rest] = shown;
  if (first === undefined) {
    return came.length === 0 ? names : undefined;
  }
  if (first.trim() === "...") {
    return Array.from({ length: came.length + 1 }, (_, skipped) => skipped).reduce<Names | undefined>(
      (found, skipped) => found ?? matchLines(rest, came.slice(skipped), names, varies),
      undefined,
    );
  }
  const known = came[0] === undefined ? undefined : matchLine(first, came[0], names, varies);
  return known && matchLines(rest, came.slice(1), known, varies);
}

function matchLine(shown: string, came: string, names: Names, varies: readonly string[]): Names | undefined {
  const variable = varies.map(escape).join("|");
  const parts = [...passing, ...named, ...(variable === "" ? [] : [variable])];
  const special = new RegExp(`${boundary.before}(?:${parts.join("|")})${boundary.after}|…`, "g");
  const fresh: string[] = [];
  const patternOf = (text: string): string => {
    if (text === "…") {
      return ".*?";
    }
    if (isName.test(text)) {
      const known = names.get(text);
      if (known !== undefined) {
        return escape(known);
      }
      const kind = named.find((kind) => new RegExp(`^(?:${kind})$`).test(text))!;
      const index = fresh.indexOf(text);
      return index >= 0 ? `\\${index + 1}` : `(${fresh.push(text) > 0 ? kind : ""})`;
    }
    const kind = passing.find((kind) => new RegExp(`^(?:${kind})$`).test(text));
    return varies.includes(text) ? number : (kind ?? escape(text));
  };
  let pattern = "";
  let end = 0;
  for (const found of shown.matchAll(special)) {
    pattern += escape(shown.slice(end, found.index)) + patternOf(found[0]);
    end = found.index + found[0].length;
  }
  pattern += escape(shown.slice(end).trimEnd());
  // Beside a number that varies columns may be wider or narrower.
  const columns = varies.some((text) => shown.includes(text)) ? pattern.replaceAll(/ {2,}/g, " {2,}") : pattern;
  const values = new RegExp(`^${columns}$`).exec(came)?.slice(1);
  if (values === undefined) {
    return undefined;
  }
  const all = new Map([...names, ...fresh.map((name, i) => [name, values[i]!] as const)]);
  return new Set(all.values()).size === all.size ? all : undefined;
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
