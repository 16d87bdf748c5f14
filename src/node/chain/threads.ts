/**
 * Threads that check large transactions, so that a document of 1 MiB does not delay other requests, and the thread that
 * hashes large documents of blocks while the database stores their rows. All start on demand.
 */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../../base/async/thread-pool.js";
import type { CheckOffThread } from "../../chain/transactions/off-thread-checks.js";
import { RpcError } from "../../rpc/errors.js";
import type { BuildDocument, BuiltDocument } from "../../storage/programs/programs.js";
import type { MemoryLimits } from "../lifecycle/memory-budget.js";
import type { CheckTask, Finding } from "./check-worker.js";
import type { DocumentTask } from "./document-worker.js";

/** Limit on checks that wait for a thread. Only an attack exceeds the limit. */
const maxWaiting = 32;

/** Creates the threads for checks, which end after 30 s without work. */
export function createCheckThreads({ threads, heapMib }: MemoryLimits["checks"]) {
  let pool: ThreadPool | undefined;
  const check: CheckOffThread = async ({ body, signature }, network) => {
    pool ??= createThreadPool({
      ...{ filename: pathOf("check-worker.js"), minThreads: 0, maxThreads: threads, idleTimeout: 30_000 },
      maxQueue: maxWaiting,
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    });
    const task: CheckTask = { body, signature, network };
    let found: Finding | undefined;
    try {
      found = (await pool.run(task, { name: "check" })) as Finding | undefined;
    } catch {
      // The queue is full, or the thread died. Neither means that the transaction is invalid.
      throw new RpcError("OVERLOADED", "Too many large transactions are being checked; try again in 1 s.", 1);
    }
    if (found !== undefined) {
      throw new RpcError(found.reason, found.message);
    }
  };
  return { check, stop: async (): Promise<void> => await pool?.destroy() };
}

/** Creates the thread for documents, which ends after 5 s without work. */
export function createDocumentThread(heapMib: number) {
  let pool: ThreadPool | undefined;
  const build: BuildDocument = async (address, text) => {
    pool ??= createThreadPool({
      ...{ filename: pathOf("document-worker.js"), minThreads: 0, maxThreads: 1, idleTimeout: 5_000 },
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
      // If the thread dies, the call for its document rejects, and the caller continues without the thread.
    }).on("error", () => undefined);
    const task: DocumentTask = { address, text };
    return (await pool.run(task, { name: "build" })) as BuiltDocument;
  };
  return { build, stop: async (): Promise<void> => await pool?.destroy() };
}

function pathOf(worker: string): string {
  return fileURLToPath(new URL(worker, import.meta.url));
}
