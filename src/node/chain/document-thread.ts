/** Thread that hashes large documents of blocks while the database stores their rows. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../../base/async/thread-pool.js";
import type { BuildDocument, BuiltDocument } from "../../storage/programs/programs.js";
import type { DocumentTask } from "./document-worker.js";

export interface DocumentThread {
  readonly build: BuildDocument;
  stop(): Promise<void>;
}

const idleMs = 5_000;

/** Creates the thread pool. Its single thread starts on demand and ends after 5 s without work. */
export function createDocumentThread(heapMib: number): DocumentThread {
  let pool: ThreadPool | undefined;
  return {
    async build(address, text) {
      pool ??= createThreadPool({
        filename: fileURLToPath(new URL("document-worker.js", import.meta.url)),
        minThreads: 0,
        maxThreads: 1,
        idleTimeout: idleMs,
        resourceLimits: { maxOldGenerationSizeMb: heapMib },
        // If the thread dies, the call for its document rejects, and the caller continues without the thread.
      }).on("error", () => undefined);
      const task: DocumentTask = { address, text };
      return (await pool.run(task, { name: "build" })) as BuiltDocument;
    },
    async stop() {
      await pool?.destroy();
    },
  };
}
