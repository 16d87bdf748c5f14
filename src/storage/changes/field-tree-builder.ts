/**
 * Builds the field trees of large documents. Hashing a document of 1 MiB takes up to a second and requires only its
 * text. Another thread therefore starts as soon as the node knows that a block will write the document.
 */
import { targetAddress } from "../../base/program-address.js";
import { typeOfJson } from "../documents/json-text.js";
import type { ExpectedOperation, BuildDocument, BuiltDocument } from "../programs/programs.js";
import { buildFieldsHere } from "../programs/program-state.js";

/**
 * Minimum length of documents that are built off-thread, in UTF-16 code units. For shorter ones the transfer to the
 * thread takes longer than the work.
 */
const offThreadLength = 64 * 1024;

/**
 * Creates a field tree builder.
 *
 * @param buildOffThread builds a tree on another thread. If it is absent or fails, the calling thread builds the tree.
 */
export function createFieldTreeBuilder(buildOffThread: BuildDocument | undefined) {
  const running = new Map<string, { readonly text: string; readonly built: Promise<BuiltDocument> }>();
  return {
    /** Starts to build the trees of the large documents that these operations will write. */
    prepare(operations: readonly ExpectedOperation[]): void {
      for (const { operation, by } of operations) {
        const text = writtenObject(operation);
        if (text !== undefined && text.length > offThreadLength && buildOffThread !== undefined) {
          const address = targetAddress(operation, by)!;
          const built = buildOffThread(address, text);
          // Prevents an unhandled rejection; `build` handles the error.
          built.catch(() => undefined);
          running.set(address, { text, built });
        }
      }
    },
    build: async (address: string, text: string): Promise<BuiltDocument> => {
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
