/**
 * Parts in which a large document is stored. Each field is stored with the text before its value: space, comma, name as
 * written, colon. The value of a field may be split into chunks; an array is split between items only. The text after
 * the last field is stored with the document itself. Concatenated in order, the parts are the document again, byte for
 * byte.
 */
import { eachMember, firstItem } from "./document.js";
import { endOfValue, nextPart } from "./json-text.js";

/** Size limit in bytes of an object document that is stored as one text. A larger one is stored in parts. */
export const maxTextBytes = 16 * 1024;
/**
 * Size in bytes at which a document in parts becomes one text again. Lower than {@link maxTextBytes}, so that small
 * changes back and forth do not convert the document each time.
 */
export const minPartsBytes = maxTextBytes / 2;
/**
 * Target length of a chunk, in UTF-16 code units. Values up to this length are not split. A single item may be longer.
 */
export const chunkLength = 8 * 1024;
/** Length in UTF-16 code units above which a chunk of several items is split. */
export const maxChunkLength = 2 * chunkLength;

export interface Chunk {
  readonly text: string;
  /** Number of array items in the chunk; 0 if the value is not an array. */
  readonly items: number;
}

export interface FieldPart {
  readonly name: string;
  /** Text between the previous value, or the start of the document, and this value. */
  readonly before: string;
  readonly value: string;
}

/** Yields the fields of an object in order. Returns the text after the last value. */
export function* eachField(object: string): Generator<FieldPart, string> {
  let end = 0;
  for (const { name, valueStart, valueEnd } of eachMember(object)) {
    yield { name, before: object.slice(end, valueStart), value: object.slice(valueStart, valueEnd) };
    end = valueEnd;
  }
  return object.slice(end);
}

/**
 * Yields the chunks of an array in order. Each chunk starts where the last item of the previous chunk ends. Returns the
 * text after the last item.
 */
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

/** Returns the position of the opening quote of the name, in the text before a value. */
export function nameStart(before: string): number {
  return before.indexOf('"');
}
