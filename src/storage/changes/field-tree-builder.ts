/**
 * Builds the field trees of large documents. Hashing a document of 1 MiB takes up to a second and requires only its
 * text. Another thread therefore starts as soon as the node knows that a block will write the document.
 */
import { targetAddress } from "../../base/program-address.js";
import { runYielding } from "../../base/async/yielding.js";
import { buildTree, type ChangedTree } from "../../tree/change.js";
import { pageTexts } from "../../tree/page-store.js";
import type { ObjectParts } from "../../tree/state-format.js";
import { typeOfJson } from "../documents/json-text.js";
import { fieldsOfObject } from "../programs/program-state.js";
import type { ExpectedOperation, BuildDocument, BuiltDocument } from "../programs/programs.js";

/**
 * Minimum length of documents that are built off-thread, in UTF-16 code units. For shorter ones the transfer to the
 * thread takes longer than the work.
 */
const offThreadLength = 64 * 1024;

/** Builds the field tree of an object of any size, yielding to the event loop between portions. */
export async function buildFields(text: string): Promise<ObjectParts & Pick<ChangedTree, "pages">> {
  const { leaves, lastKey, tailHash } = await runYielding(fieldsOfObject(text));
  const { root: fieldsRoot, pages } = await runYielding(buildTree(leaves));
  return { fieldsRoot, lastKey, tailHash, pages };
}

/** Builds the field tree on the calling thread, yielding to the event loop between portions. */
export const buildFieldsHere: BuildDocument = async (address, text) => {
  const { pages, ...object } = await buildFields(text);
  return { ...object, pages: [...pageTexts(address, pages)] };
};

/** Field tree builder for the documents of one block. */
export interface FieldTreeBuilder {
  /** Starts to build the trees of the large documents that these operations will write. */
  prepare(operations: readonly ExpectedOperation[]): void;
  readonly build: BuildDocument;
}

/**
 * Creates a field tree builder.
 *
 * @param buildOffThread builds a tree on another thread. If it is absent or fails, the calling thread builds the tree.
 */
export function createFieldTreeBuilder(buildOffThread: BuildDocument | undefined): FieldTreeBuilder {
  const running = new Map<string, { readonly text: string; readonly built: Promise<BuiltDocument> }>();
  return {
    prepare(operations) {
      for (const { operation, by } of buildOffThread === undefined ? [] : operations) {
        const text = writtenObject(operation);
        if (text !== undefined && text.length > offThreadLength) {
          const address = targetAddress(operation, by)!;
          const built = buildOffThread!(address, text);
          // Prevents an unhandled rejection; `build` handles the error.
          built.catch(() => undefined);
          running.set(address, { text, built });
        }
      }
    },
    async build(address, text) {
      const started = running.get(address);
      // A later operation may have rewritten or changed the document.
      const built = started?.text === text ? await started.built.catch(() => undefined) : undefined;
      return built ?? (await buildFieldsHere(address, text));
    },
  };
}

/** Returns the text of the object that an operation writes; undefined for other operations. */
function writtenObject({ operation }: ExpectedOperation["operation"]): string | undefined {
  const data =
    operation.case === "createProgram" || operation.case === "writeProgram" ? operation.value.data : undefined;
  return data?.data.case === "json" && typeOfJson(data.data.value) === "object" ? data.data.value : undefined;
}
