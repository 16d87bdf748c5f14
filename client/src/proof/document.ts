/** Recomputes the hash of a document from its text. */
import { eachField } from "../../../src/storage/documents/document-parts.js";
import { type JsonType, typeOfJson } from "../../../src/storage/documents/json-text.js";
import type { Leaf } from "../../../src/tree/path.js";
import { zeroHash, type ObjectParts } from "../../../src/tree/state-format.js";
import { stateHashes, treeNodes } from "./hashing.js";

/** Returns the type of a document; undefined if the text is not JSON. */
export function typeOfDocument(text: string): JsonType | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return typeOfJson(text);
}

/**
 * Returns the parts of an object that are hashed.
 *
 * @param text JSON text of an object.
 * @returns undefined if a name occurs twice, which no stored document has.
 */
export function toObjectParts(text: string): ObjectParts | undefined {
  const leaves: Leaf[] = [];
  let previousKey = zeroHash;
  const fields = eachField(text);
  for (let next = fields.next(); ; next = fields.next()) {
    if (next.done === true) {
      const fieldsRoot = treeNodes.rootOfLeaves(leaves);
      return fieldsRoot && { fieldsRoot, lastKey: previousKey, tailHash: stateHashes.text(next.value) };
    }
    const { name, before, value } = next.value;
    const key = stateHashes.fieldKey(JSON.stringify(name));
    leaves.push({ key, valueHash: stateHashes.field({ before, previousKey, value }) });
    previousKey = key;
  }
}

/** Returns the names of the fields of an object, in order. */
export function namesOf(text: string): string[] {
  return [...eachField(text)].map(({ name }) => name);
}
