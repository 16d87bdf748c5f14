/**
 * The trees of the fields of large documents. One of 1 MiB is up to a second of hashes, which need nothing but its text: so
 * another thread begins with them as soon as it is known that the document will be written.
 */
import { targetAddress } from "../../base/program-address.js";
import { inTurns } from "../../base/async/yielding.js";
import { buildTree, type ChangedTree } from "../../tree/change.js";
import { pageTexts } from "../../tree/page-store.js";
import type { ObjectParts } from "../../tree/state-format.js";
import { typeOfJson } from "../documents/json-text.js";
import { fieldsOfObject } from "../programs/program-state.js";
import type { ExpectedOperation, GrowDocument, GrownDocument } from "../programs/programs.js";

/** Documents that are shorter are grown before a thread has heard of them. */
const asideLength = 64 * 1024;

/** The tree of the fields of an object, of any size. */
export async function buildFields(text: string): Promise<ObjectParts & Pick<ChangedTree, "pages">> {
  const { leaves, lastKey, tailHash } = await inTurns(fieldsOfObject(text));
  const { root: fieldsRoot, pages } = await inTurns(buildTree(leaves));
  return { fieldsRoot, lastKey, tailHash, pages };
}

/** Grows it in the thread of who asks, in which others have their turns. */
export const buildFieldsHere: GrowDocument = async (address, text) => {
  const { pages, ...object } = await buildFields(text);
  return { ...object, pages: [...pageTexts(address, pages)] };
};

/** The documents of one block. */
export interface FieldTreeBuilder {
  /** Begins with those that operations that come will write. */
  expect(operations: readonly ExpectedOperation[]): void;
  readonly grow: GrowDocument;
}

/** @param aside grows a document in another thread; where it is left out, or cannot, that is done here. */
export function createFieldTreeBuilder(aside: GrowDocument | undefined): FieldTreeBuilder {
  const begun = new Map<string, { readonly text: string; readonly grown: Promise<GrownDocument> }>();
  return {
    expect(operations) {
      for (const { operation, by } of aside === undefined ? [] : operations) {
        const text = writtenObject(operation);
        if (text !== undefined && text.length > asideLength) {
          const address = targetAddress(operation, by)!;
          const grown = aside!(address, text);
          // Who wants it hears of it.
          grown.catch(() => undefined);
          begun.set(address, { text, grown });
        }
      }
    },
    async grow(address, text) {
      const known = begun.get(address);
      // It may have been written once more, or changed since.
      const grown = known?.text === text ? await known.grown.catch(() => undefined) : undefined;
      return grown ?? (await buildFieldsHere(address, text));
    },
  };
}

/** The text of the object that an operation writes. */
function writtenObject({ operation }: ExpectedOperation["operation"]): string | undefined {
  const data =
    operation.case === "createProgram" || operation.case === "writeProgram" ? operation.value.data : undefined;
  return data?.data.case === "json" && typeOfJson(data.data.value) === "object" ? data.data.value : undefined;
}
