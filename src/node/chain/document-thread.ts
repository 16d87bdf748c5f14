/** The thread that hashes large documents of blocks, while their rows are stored. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../../base/async/thread-pool.js";
import type { GrowDocument, GrownDocument } from "../../storage/programs/programs.js";
import type { DocumentTask } from "./document-worker.js";

export interface DocumentThread {
  readonly grow: GrowDocument;
  stop(): Promise<void>;
}

const idleMs = 5_000;

/** Builds it; there is no thread until one is needed. */
export function createDocumentThread(heapMib: number): DocumentThread {
  let pool: ThreadPool | undefined;
  return {
    async grow(address, text) {
      pool ??= createThreadPool({
        filename: fileURLToPath(new URL("document-worker.js", import.meta.url)),
        minThreads: 0,
        maxThreads: 1,
        idleTimeout: idleMs,
        resourceLimits: { maxOldGenerationSizeMb: heapMib },
        // Whoever's document it was at hears of a thread that dies, and does without.
      }).on("error", () => undefined);
      const task: DocumentTask = { address, text };
      return (await pool.run(task, { name: "grow" })) as GrownDocument;
    },
    async stop() {
      await pool?.destroy();
    },
  };
}
