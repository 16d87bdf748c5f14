/** The hash of a document, made anew from its text. */
import { eachField } from "../../../src/storage/documents/document-parts.js";
import { type JsonType, typeOfJson } from "../../../src/storage/documents/json-text.js";
import type { Leaf } from "../../../src/tree/path.js";
import { nothing, type ObjectParts } from "../../../src/tree/state-format.js";
import { stateHashes, treeNodes } from "./hashing.js";

/** Type of a document's text; undefined where it is no JSON. */
export function typeOfDocument(text: string): JsonType | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return typeOfJson(text);
}

/**
 * What is hashed of an object.
 *
 * @param text JSON text of an object.
 * @returns undefined where a name is in it twice, which no document that was stored has.
 */
export function toObjectParts(text: string): ObjectParts | undefined {
  const leaves: Leaf[] = [];
  let previousKey = nothing;
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

/** Names of the fields of an object, in its order. */
export function namesOf(text: string): string[] {
  return [...eachField(text)].map(({ name }) => name);
}
