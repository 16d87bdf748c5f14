/** Random marker texts, and the search for them in responses, in any encoding. */
import { randomBytes } from "node:crypto";

/** Marker texts that start with a common stem. */
export type Markers = ReturnType<typeof createMarkers>;

const stemLength = 18;

export function createMarkers() {
  const stem = `m${randomBytes(16).toString("hex")}`.slice(0, stemLength);
  /** The encodings of each marker, by name. */
  const encodings = new Map<string, readonly string[]>();
  const stemForms = formsOf(stem);
  return {
    /** The first characters of the stem, for search requests: a response may repeat them without a leak. */
    stemPrefix: stem.slice(0, 6),
    /** Creates a marker of 30 characters. The name identifies it in reports. */
    make(name: string): string {
      const marker = `${stem}${randomBytes(6).toString("hex")}`;
      encodings.set(name, formsOf(marker));
      return marker;
    },
    /** Returns the names of the markers in these bytes; "?" for a stem without a known marker. */
    findIn(bytes: Buffer): string[] {
      if (!stemForms.some((form) => bytes.includes(form, 0, "latin1"))) {
        return [];
      }
      const found = [...encodings].filter(([, forms]) => forms.some((form) => bytes.includes(form, 0, "latin1")));
      return found.length === 0 ? ["?"] : found.map(([name]) => name);
    },
  };
}

/** Returns the encodings of a text: unchanged, escaped, in hex, base64 and decimals, and some of them in base64. */
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

/** Returns the part of the base64 that does not depend on adjacent bytes, for each of the three alignments. */
function base64Of(text: string): string[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64");
    const end = Math.floor(((before + text.length) * 8) / 6);
    return encoded.slice(Math.ceil((before * 8) / 6), end);
  });
}
