/** Reads items of arrays in programs. Reads only the chunk with the item if the array is stored in chunks. */
import { RpcError } from "../../rpc/errors.js";
import type { Call } from "../../rpc/service.js";
import { countItems, sliceItem } from "../documents/document.js";
import { requireField, requireObject, requireReadable } from "./read-guards.js";
import type { FieldPortion, Programs } from "./programs.js";
import { notAnArray } from "./rejections.js";

/** Array, or the chunk of a large array that holds an item. */
export interface ArrayPart {
  readonly isComplete: boolean;
  /** Returns the length of the full array. */
  length(): number;
  /** Returns the text of an item by its index in the full array; undefined if this part does not hold the item. */
  itemAt(index: number): string | undefined;
}

/**
 * Creates the array reads. Each throws RpcError NOT_FOUND, PERMISSION_DENIED, FIELD_NOT_FOUND or INVALID_FIELD_TYPE.
 */
export function createArrayReads(programs: Pick<Programs, "findWithItem">) {
  /** Reads an array field, or the chunk of it that holds the item. */
  async function read(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    const found = requireReadable(await programs.findWithItem(address, name, index), call);
    requireObject(found.record);
    const field = requireField(found.field, name);
    if (field.type !== "array") {
      throw new RpcError(...notAnArray(field.type));
    }
    return toArrayPart(field);
  }

  /**
   * Reads the part that holds an item counted from the end. The chunk depends on the array's length, so the read
   * repeats until the length is the one assumed.
   */
  async function readFromEnd(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    for (let length = 0; ;) {
      const array = await read(address, name, Math.max(0, length - 1 - index), call);
      if (array.isComplete || array.length() === length) {
        return array;
      }
      length = array.length();
    }
  }

  return { read, readFromEnd };
}

function toArrayPart({ value, chunk }: FieldPortion): ArrayPart {
  return {
    isComplete: chunk === undefined,
    length: () => chunk?.arrayItems ?? countItems(value),
    itemAt: (index) => sliceItem(value, index - (chunk?.firstItem ?? 0)),
  };
}
