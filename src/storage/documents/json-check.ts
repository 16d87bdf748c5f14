/** Which texts can be a document, or a part of one. */
import { endOfString } from "../../base/text/json-string.js";
import { RpcError } from "../../rpc/errors.js";
import { maxDocumentDepth, maxFieldBytes } from "./document-bounds.js";
import { quote, skipSpace, stringAt } from "./json-text.js";

/** What a text is. */
export interface JsonUse {
  /** To start the sentence of an error. */
  readonly what: string;
  /** How many levels stand around it in the document. */
  readonly levelsAround?: number;
  /** Whether it is a whole document, whose members are fields. */
  readonly isDocument?: boolean;
}

/**
 * Checks that a text is JSON, not too deep, and has no object with two members of one name, since readers
 * would disagree about which of them counts. What the text says is in no error: anybody may read why a transaction was
 * rejected.
 *
 * @throws Failure INVALID_REQUEST
 */
export function checkJson(text: string, { what, levelsAround = 0, isDocument = false }: JsonUse): void {
  const { isTooDeep, hasTwins, hasLongField } = look(text, maxDocumentDepth - levelsAround, isDocument);
  if (isTooDeep) {
    // Before a parser sees it, which deep nesting would hold up.
    throw invalid(
      `${levelsAround > 0 ? "The document" : what} must not be nested deeper than ${maxDocumentDepth} levels.`,
    );
  }
  if (!isJson(text)) {
    throw invalid(`${what} is not JSON.`);
  }
  if (hasTwins) {
    throw invalid(`${what} has an object with two members of one name.`);
  }
  if (hasLongField) {
    throw invalid(`The name of a field must not be longer than ${maxFieldBytes} bytes.`);
  }
}

function isLongField(name: string): boolean {
  return name.length > maxFieldBytes || (3 * name.length > maxFieldBytes && Buffer.byteLength(name) > maxFieldBytes);
}

function invalid(message: string): RpcError {
  return new RpcError("INVALID_REQUEST", message);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Findings {
  isTooDeep: boolean;
  hasTwins: boolean;
  hasLongField: boolean;
}

/** Looks at brackets and names in one pass. Of a text that is no JSON it finds something, or nothing. */
function look(text: string, maxDepth: number, isDocument: boolean): Findings {
  const found: Findings = { isTooDeep: false, hasTwins: false, hasLongField: false };
  /** By level: the names of an object, undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case quote: {
        const start = i;
        i = endOfString(text, start);
        if (i < 0) {
          return found;
        }
        const names = open.at(-1);
        if (names !== undefined && text.charCodeAt(skipSpace(text, i + 1)) === 0x3a) {
          const name = nameAt(text, start, i + 1);
          found.hasTwins ||= names.has(name);
          found.hasLongField ||= isDocument && open.length === 1 && isLongField(name);
          names.add(name);
        }
        break;
      }
      case 0x7b: // {
      case 0x5b: // [
        if (open.length === maxDepth) {
          found.isTooDeep = true;
          return found;
        }
        open.push(text.charCodeAt(i) === 0x7b ? new Set() : undefined);
        break;
      case 0x5d: // ]
      case 0x7d: // }
        open.pop();
    }
  }
  return found;
}

/** The name as it is written where it is none. */
function nameAt(text: string, start: number, end: number): string {
  try {
    return stringAt(text, start, end);
  } catch {
    return text.slice(start, end);
  }
}
