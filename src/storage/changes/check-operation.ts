/**
 * Stateless checks of operations, beyond the limits of the proto contract. These checks are rules of the chain, so they
 * must be the same on every node.
 */
import type { ProgramData, StorageOperation } from "../../../gen/gatehouse/storage/v1/operation_pb.js";
import { RpcError } from "../../rpc/errors.js";
import { checkAccessControl } from "../programs/access.js";
import { endOfString } from "../../base/text/json-string.js";
import { maxDocumentDepth, maxFieldBytes } from "../documents/document-bounds.js";
import { quote, skipSpace, stringAt, typeOfJson } from "../documents/json-text.js";

/**
 * Checks an operation that already meets the limits of the proto contract. An operation that passes may still be
 * rejected because of the stored state.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkOperation({ operation }: StorageOperation): void {
  switch (operation.case) {
    case "createProgram": {
      const { metadata, access, data } = operation.value;
      checkMetadata(metadata);
      checkAccessControl(access);
      checkData(data);
      return;
    }
    case "writeProgram":
      checkData(operation.value.data);
      return;
    case "updateAccess":
      checkAccessControl(operation.value.access);
      return;
    case "setField":
      checkJson(operation.value.value, { subject: "The value", outerLevels: 1 });
      return;
    case "setItem":
    case "appendItem":
      checkJson(operation.value.value, { subject: "The item", outerLevels: 2 });
      return;
    case "deleteField":
    case "deleteItem":
    case "deleteProgram":
      return;
    case undefined:
      throw invalid("The storage operation is empty; set one of its changes.");
  }
}

function checkMetadata(metadata: string | undefined): void {
  if (metadata !== undefined) {
    checkJson(metadata, { subject: "The metadata" });
    if (typeOfJson(metadata) !== "object") {
      throw invalid("The metadata must be a JSON object.");
    }
  }
}

function checkData(data: ProgramData | undefined): void {
  if (data?.data.case === "json") {
    checkJson(data.data.value, { subject: "The document", isDocument: true });
  }
}

/** Role of a checked text in a document. */
interface JsonRole {
  /** Subject of the error message, such as "The document". */
  readonly subject: string;
  /** Number of nesting levels that enclose the text in the document. */
  readonly outerLevels?: number;
  /** True if the text is a full document, so that its members are fields with limited names. */
  readonly isDocument?: boolean;
}

/**
 * Checks that a text is JSON within the depth limit, without duplicate member names in an object. JSON readers disagree
 * about which duplicate applies. Error messages never quote the text, since rejection reasons are public.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkJson(text: string, { subject, outerLevels = 0, isDocument = false }: JsonRole): void {
  const { isTooDeep, hasDuplicates, hasLongField } = scan(text, maxDocumentDepth - outerLevels, isDocument);
  if (isTooDeep) {
    // Checked before parsing, because deep nesting would stall the parser.
    throw invalid(
      `${outerLevels > 0 ? "The document" : subject} must not be nested deeper than ${maxDocumentDepth} levels.`,
    );
  }
  if (!isJson(text)) {
    throw invalid(`${subject} is not JSON.`);
  }
  if (hasDuplicates) {
    throw invalid(`${subject} has an object with duplicate member names.`);
  }
  if (hasLongField) {
    throw invalid(`The name of a field must not be longer than ${maxFieldBytes} bytes.`);
  }
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

/** Scans brackets and names in one pass. The findings mean something only if the text is valid JSON. */
function scan(text: string, maxDepth: number, isDocument: boolean) {
  const found = { isTooDeep: false, hasDuplicates: false, hasLongField: false };
  /** Open brackets, outermost first: the member names of an object, or undefined for an array. */
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
          found.hasDuplicates ||= names.has(name);
          found.hasLongField ||= isDocument && open.length === 1 && Buffer.byteLength(name) > maxFieldBytes;
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

/** Returns the name of a member. Returns its text unchanged if it is not a valid JSON string. */
function nameAt(text: string, start: number, end: number): string {
  try {
    return stringAt(text, start, end);
  } catch {
    return text.slice(start, end);
  }
}
