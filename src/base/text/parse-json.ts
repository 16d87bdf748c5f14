/**
 * JSON parser for input from outside. `JSON.parse` would change numbers that a JavaScript number cannot hold, and take
 * the last of several members with one name. Other parsers take the first, so a proxy could see another request.
 */
import { endOfString } from "./json-string.js";
import { showText } from "./show-text.js";

/** Number with a text that a JavaScript number would change, such as 9007199254740993, 1e400 or 1.0. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

export type Json = string | number | JsonNumber | boolean | null | readonly Json[] | JsonMembers;

export interface JsonMembers {
  readonly [name: string]: Json;
}

/**
 * Error in JSON text. The message is a description that follows the name of the text, such as "is not JSON at line 3,
 * column 7: unexpected }". Lines and columns count from 1, columns in characters.
 */
export class JsonError extends Error {
  override readonly name = "JsonError";
}

/** Returns true for an object of JSON text: neither a list nor a number. */
export function isJsonObject(json: unknown): json is JsonMembers {
  return typeof json === "object" && json !== null && !Array.isArray(json) && !(json instanceof JsonNumber);
}

/** Converts all numbers to JavaScript numbers, as `JSON.parse` does. */
export function toPlainJson(json: Json): unknown {
  if (json instanceof JsonNumber) {
    return Number(json.text);
  }
  if (Array.isArray(json)) {
    return (json as readonly Json[]).map(toPlainJson);
  }
  return isJsonObject(json)
    ? Object.fromEntries(Object.entries(json).map(([name, value]) => [name, toPlainJson(value)]))
    : json;
}

/**
 * Returns why a text is not JSON, as the message of a JsonError has it: for texts that `JSON.parse` rejected without a
 * position.
 */
export function describeJsonError(text: string): string {
  try {
    parseJsonText(text);
  } catch (error) {
    if (error instanceof JsonError) {
      return error.message;
    }
    throw error;
  }
  return "is not JSON";
}

/** Limit on the nesting of lists and objects. A parser that calls itself for each level needs one. */
const defaultMaxDepth = 128;
/** Limit on the length of a number. Readers of long numbers take time that grows with its square. */
const maxNumberLength = 1_000;

/**
 * Parses JSON text.
 *
 * @param maxValues limit on the number of values, because each takes more time and memory than its text.
 * @throws JsonError if the text is not JSON, exceeds a limit, or has an object with two members of one name.
 */
export function parseJsonText(text: string, maxDepth = defaultMaxDepth, maxValues = Infinity): Json {
  return new Parser(text, maxDepth, maxValues).parse();
}

const numberForm = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** Texts below this length are copied by a slice. A slice of a longer text would keep all the input in memory. */
const minSliced = 13;

class Parser {
  #at = 0;
  #values = 0;

  constructor(
    private readonly text: string,
    private readonly maxDepth: number,
    private readonly maxValues: number,
  ) {}

  parse(): Json {
    const value = this.#value(0);
    if (this.#next() !== undefined) {
      throw this.#notJson();
    }
    return value;
  }

  /** Skips white space, and returns the code of the next character; undefined at the end. */
  #next(): number | undefined {
    const { text } = this;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) {
        return code;
      }
      this.#at++;
    }
    return undefined;
  }

  #value(depth: number): Json {
    if (++this.#values > this.maxValues) {
      throw this.#error(`has more than ${this.maxValues} values`);
    }
    switch (this.#next()) {
      case 0x22: // "
        return this.#string();
      case 0x7b: // {
        return this.#object(this.#enter(depth));
      case 0x5b: // [
        return this.#list(this.#enter(depth));
      case 0x74: // t
        return this.#word("true", true);
      case 0x66: // f
        return this.#word("false", false);
      case 0x6e: // n
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #enter(depth: number): number {
    if (depth === this.maxDepth) {
      throw this.#error(`is nested deeper than ${this.maxDepth} levels`);
    }
    this.#at++;
    return depth + 1;
  }

  #object(depth: number): JsonMembers {
    const members: Record<string, Json> = {};
    if (this.#next() === 0x7d) {
      this.#at++;
      return members;
    }
    do {
      if (this.#next() !== 0x22) {
        throw this.#notJson();
      }
      const start = this.#at;
      const name = this.#string();
      if (Object.hasOwn(members, name)) {
        throw this.#error(`has two members with the name ${showText(name)} in one object`, start);
      }
      this.#skip(0x3a); // :
      const value = this.#value(depth);
      if (name === "__proto__") {
        Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
      } else {
        members[name] = value;
      }
    } while (this.#continues(0x7d));
    return members;
  }

  #list(depth: number): Json[] {
    const items: Json[] = [];
    if (this.#next() === 0x5d) {
      this.#at++;
      return items;
    }
    do {
      items.push(this.#value(depth));
    } while (this.#continues(0x5d));
    return items;
  }

  /** Skips a comma, and returns true; or skips the end of a list or an object, and returns false. */
  #continues(end: number): boolean {
    const code = this.#next();
    if (code !== 0x2c && code !== end) {
      throw this.#notJson();
    }
    this.#at++;
    return code === 0x2c;
  }

  #skip(code: number): void {
    if (this.#next() !== code) {
      throw this.#notJson();
    }
    this.#at++;
  }

  #string(): string {
    const { text } = this;
    const start = this.#at;
    for (let i = start + 1; i <= start + minSliced; i++) {
      const code = text.charCodeAt(i);
      if (code === 0x22) {
        this.#at = i + 1;
        return text.slice(start + 1, i);
      }
      if (code < 0x20 || code === 0x5c) {
        break;
      }
    }
    const end = endOfString(text, start) + 1;
    try {
      const string = JSON.parse(text.slice(start, end)) as string;
      this.#at = end;
      return string;
    } catch {
      throw this.#notJson(invalidInString(text, start));
    }
  }

  #word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.#at)) {
      throw this.#notJson();
    }
    this.#at += word.length;
    return value;
  }

  #number(): number | JsonNumber {
    numberForm.lastIndex = this.#at;
    const text = numberForm.exec(this.text)?.[0];
    if (text === undefined) {
      throw this.#notJson();
    }
    if (text.length > maxNumberLength) {
      throw this.#error(`has a number with more than ${maxNumberLength} characters`);
    }
    this.#at += text.length;
    const number = Number(text);
    return String(number) === text ? number : new JsonNumber(text);
  }

  /** Creates the error for text that is not JSON, with the first character that is not. */
  #notJson(at = this.#at): JsonError {
    const code = this.text.codePointAt(at);
    const found = code === undefined ? "the text ends" : `unexpected ${showText(String.fromCodePoint(code))}`;
    return new JsonError(`is not JSON${placeOf(this.text, at)}: ${found}${this.#hintAt(at)}`);
  }

  /** Returns the remedy of the commonest mistake. */
  #hintAt(at: number): string {
    const { text } = this;
    let before = at - 1;
    while (" \n\r\t".includes(text.charAt(before)) && before >= 0) {
      before--;
    }
    return /^[\]}]/.test(text.charAt(at)) && text[before] === "," ? "; remove the comma before it" : "";
  }

  #error(description: string, at = this.#at): JsonError {
    return new JsonError(`${description},${placeOf(this.text, at)}`);
  }
}

/** Describes a position: ` at line 3, column 7`. Copies no text, since a request may have one long line. */
function placeOf(text: string, at: number): string {
  let [line, column] = [1, 1];
  for (let i = 0; i < at; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x0a) {
      line++;
      column = 1;
    } else if ((code & 0xfc00) !== 0xdc00) {
      // The second half of a surrogate pair is no character of its own.
      column++;
    }
  }
  return ` at line ${line}, column ${column}`;
}

/** Returns the position of the first invalid character of a string that starts at `start`; of the end without one. */
function invalidInString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20) {
      return i;
    }
    if (code === 0x5c) {
      const escape = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(text.slice(i, i + 6))?.[0];
      if (escape === undefined) {
        return i;
      }
      i += escape.length - 1;
    }
  }
  return text.length;
}
