/**
 * Compares the output that a document shows with the actual output.
 *
 * `…` matches anything within a line, and a line `...` any lines. Keys, hashes, signatures and program addresses differ
 * in each run. A shown value stands for the actual value in its first place, also in later commands; two shown values
 * never stand for the same one. Timestamps match any timestamp. Everything else must be equal.
 */
import { trimEndLines } from "./document.js";

/** Actual values by shown value. */
export type Names = ReadonlyMap<string, string>;

/** Patterns of values that have one actual value in all of a document. */
const named = ["0x[0-9a-f]{128}", "0x[0-9a-f]{64}", "stor-[0-9a-f]{40}"];
/** Patterns of values that may differ each time: ms since 1970, ISO 8601 times, abbreviated keys. */
const varying = ["1[0-9]{12}", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "0x[0-9a-f]{8}…[0-9a-f]{4}"];
const number = "[0-9]+(?:\\.[0-9]+)?";
const boundary = { before: "(?<![\\w.-])", after: "(?![\\w-]|\\.[0-9])" };

const isName = new RegExp(`^(?:${named.join("|")})$`);
const anyName = new RegExp(`(?<!\\w)(?:${named.join("|")})(?!\\w)`, "g");

/** Replaces shown values in a text, such as a command, by the actual values. */
export function withNames(text: string, names: Names): string {
  return text.replace(anyName, (name) => names.get(name) ?? name);
}

/** Adds the unknown values of a command, which stand for themselves. */
export function namesOf(command: string, names: Names): Names {
  return new Map([...(command.match(anyName) ?? []).map((name) => [name, name] as const), ...names]);
}

/**
 * Matches an actual output with the shown one. Returns all known values; undefined if the output does not match.
 *
 * @param varies Shown numbers that may be any number.
 */
export function matchOutput(
  shown: readonly string[],
  actual: string,
  names: Names,
  varies: readonly string[] = [],
): Names | undefined {
  return matchLines(shown, linesOf(actual), names, varies);
}

/** Splits an output into lines, without carriage returns and trailing space. */
export function linesOf(actual: string): string[] {
  return trimEndLines(actual.replaceAll("\r", "").split("\n")).map((line) => line.trimEnd());
}

function matchLines(
  shown: readonly string[],
  actual: readonly string[],
  names: Names,
  varies: readonly string[],
): Names | undefined {
  const [first, ...rest] = shown;
  if (first === undefined) {
    return actual.length === 0 ? names : undefined;
  }
  if (first.trim() === "...") {
    let found: Names | undefined;
    for (let skipped = 0; found === undefined && skipped <= actual.length; skipped++) {
      found = matchLines(rest, actual.slice(skipped), names, varies);
    }
    return found;
  }
  const known = actual[0] === undefined ? undefined : matchLine(first, actual[0], names, varies);
  return known && matchLines(rest, actual.slice(1), known, varies);
}

function matchLine(shown: string, actual: string, names: Names, varies: readonly string[]): Names | undefined {
  const variable = varies.map(escape).join("|");
  const parts = [...varying, ...named, ...(variable === "" ? [] : [variable])];
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
    const kind = varying.find((kind) => new RegExp(`^(?:${kind})$`).test(text));
    return varies.includes(text) ? number : (kind ?? escape(text));
  };
  let pattern = "";
  let end = 0;
  for (const found of shown.matchAll(special)) {
    pattern += escape(shown.slice(end, found.index)) + patternOf(found[0]);
    end = found.index + found[0].length;
  }
  pattern += escape(shown.slice(end).trimEnd());
  // Next to a number that varies, the width of columns may differ.
  const columns = varies.some((text) => shown.includes(text)) ? pattern.replaceAll(/ {2,}/g, " {2,}") : pattern;
  const values = new RegExp(`^${columns}$`).exec(actual)?.slice(1);
  if (values === undefined) {
    return undefined;
  }
  const all = new Map([...names, ...fresh.map((name, i) => [name, values[i]!] as const)]);
  return new Set(all.values()).size === all.size ? all : undefined;
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
