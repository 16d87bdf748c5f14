/** Reads of arrays in programs: of the part that holds an item, where that is all there is to read. */
import { RpcError } from "../../rpc/errors.js";
import type { Call } from "../../rpc/service.js";
import { countItems, sliceItem } from "../documents/document.js";
import { requireField, requireObject, requireReadable } from "./read-guards.js";
import type { FieldPortion, Programs } from "./programs.js";
import { noArray } from "./refusals.js";

/** An array, or a part of it. */
export interface ArrayPart {
  readonly isWhole: boolean;
  /** Of the whole array. */
  length(): number;
  /** Text of an item of this part, by its place in the array; undefined where there is none. */
  itemAt(index: number): string | undefined;
}

/** The reads. All throw Failure NOT_FOUND, PERMISSION_DENIED, FIELD_NOT_FOUND, INVALID_FIELD_TYPE. */
export function createArrayReads(programs: Pick<Programs, "findWithItem">) {
  /** An array field, or the part of it that holds an item. */
  async function read(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    const found = requireReadable(await programs.findWithItem(address, name, index), call);
    requireObject(found.record);
    const field = requireField(found.field, name);
    if (field.type !== "array") {
      throw new RpcError(...noArray(field.type));
    }
    return toArrayPart(field);
  }

  /** The same, for an item that is counted from the end: it is looked for until the array is as long as was thought. */
  async function readFromEnd(address: string, name: string, index: number, call: Call): Promise<ArrayPart> {
    for (let length = 0; ;) {
      const array = await read(address, name, Math.max(0, length - 1 - index), call);
      if (array.isWhole || array.length() === length) {
        return array;
      }
      length = array.length();
    }
  }

  return { read, readFromEnd };
}

function toArrayPart({ value, chunk }: FieldPortion): ArrayPart {
  return {
    isWhole: chunk === undefined,
    length: () => chunk?.arrayItems ?? countItems(value),
    itemAt: (index) => sliceItem(value, index - (chunk?.firstItem ?? 0)),
  };
}
