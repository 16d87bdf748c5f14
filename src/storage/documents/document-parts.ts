/**
 * The parts that a large document is kept in. Each field has the text that stands before its value: space, comma, name
 * as written, colon. The value of a field may be kept in chunks, an array's in chunks of whole items. What follows the
 * last part stays with the whole: put together in their order, the texts are the document again, byte for byte.
 */
import { eachMember, firstItem } from "./document.js";
import { endOfValue, nextPart } from "./json-text.js";

/** A document that is an object is kept as one text up to this size, and in parts above. */
export const maxTextBytes = 16 * 1024;
/** One that is kept in parts becomes one text at this size. It is less, so that changes to and fro do not convert it each time. */
export const minPartsBytes = maxTextBytes / 2;
/** Length in UTF-16 units that a chunk is filled up to, and up to which a value needs none. One item may be longer. */
export const chunkLength = 8 * 1024;
/** A chunk of several items that grew above this is split. */
export const maxChunkLength = 2 * chunkLength;

/** Part of a value. */
export interface Chunk {
  readonly text: string;
  /** How many items of an array it holds; 0 of other values. */
  readonly items: number;
}

/** A field of a document. */
export interface FieldPart {
  readonly name: string;
  /** Text between the value before, or the begin of the document, and this value. */
  readonly before: string;
  readonly value: string;
}

/** The fields of an object; returns the text after them. */
export function* eachField(object: string): Generator<FieldPart, string> {
  let end = 0;
  for (const { name, valueStart, valueEnd } of eachMember(object)) {
    yield { name, before: object.slice(end, valueStart), value: object.slice(valueStart, valueEnd) };
    end = valueEnd;
  }
  return object.slice(end);
}

/** The chunks of an array; returns the text after its last item. A chunk begins where the item before it ends. */
export function* eachChunk(array: string): Generator<Chunk, string> {
  let [start, end, items] = [0, 0, 0];
  let i = firstItem(array);
  while (i < array.length && array.charAt(i) !== "]") {
    end = endOfValue(array, i);
    items++;
    if (end - start >= chunkLength) {
      yield { text: array.slice(start, end), items };
      [start, items] = [end, 0];
    }
    i = nextPart(array, end);
  }
  if (items > 0) {
    yield { text: array.slice(start, end), items };
  }
  return array.slice(end);
}

/** Where the name begins in the text before a value. */
export function nameStart(before: string): number {
  return before.indexOf('"');
}
