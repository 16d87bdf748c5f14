/** Texts that are in no answer by chance, and the search for them in whatever a node has said, however it is written. */
import { randomBytes } from "node:crypto";

/** Texts that all begin with one stem. */
export interface Markers {
  /** A part of the stem: to search with, since a request may be repeated in its answer. */
  readonly beginning: string;
  /** A new text of 30 characters, named for the report of where it was found. */
  make(name: string): string;
  /** Names of the markers in these bytes; "?" where only a stem is to be seen. */
  findIn(bytes: Buffer): string[];
}

const stemLength = 18;

export function createMarkers(): Markers {
  const stem = `m${randomBytes(16).toString("hex")}`.slice(0, stemLength);
  /** How each may be written, by its name. */
  const made = new Map<string, readonly string[]>();
  const stemForms = formsOf(stem);
  return {
    beginning: stem.slice(0, 6),
    make(name) {
      const marker = `${stem}${randomBytes(6).toString("hex")}`;
      made.set(name, formsOf(marker));
      return marker;
    },
    findIn(bytes) {
      if (!stemForms.some((form) => bytes.includes(form, 0, "latin1"))) {
        return [];
      }
      const found = [...made].filter(([, forms]) => forms.some((form) => bytes.includes(form, 0, "latin1")));
      return found.length === 0 ? ["?"] : found.map(([name]) => name);
    },
  };
}

/** A text as answers may have it: as it is, escaped, in hex, base64, numbers, and one of them in base64 again. */
export function formsOf(text: string): string[] {
  const once = [text, ...base64Of(text)];
  const escaped = (before: string): string =>
    Array.from(text, (letter) => `${before}${letter.charCodeAt(0).toString(16)}`).join("");
  const upper = text.toUpperCase();
  return [
    ...new Set([
      ...once,
      ...once.flatMap(base64Of),
      upper,
      escaped(""),
      escaped("").toUpperCase(),
      escaped("\\u00"),
      escaped("\\x"),
      escaped("%"),
      [...Buffer.from(text)].join(","),
      Array.from(text).join("\0"),
      ...base64Of(escaped("\\u00")),
    ]),
  ];
}

/** What of its base64 does not depend on what stands beside it, for each of the three ways in which it may begin. */
function base64Of(text: string): string[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64");
    const whole = Math.floor(((before + text.length) * 8) / 6);
    return encoded.slice(Math.ceil((before * 8) / 6), whole);
  });
}
