/** Threads that look at large transactions, so that a document of 1 MiB keeps nobody else waiting. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../../base/async/thread-pool.js";
import type { CheckOffThread } from "../../chain/transactions/off-thread-checks.js";
import { RpcError } from "../../rpc/errors.js";
import type { MemoryBounds } from "../lifecycle/memory-budget.js";
import type { CheckTask, Finding } from "./check-worker.js";

export interface CheckThreads {
  readonly check: CheckOffThread;
  stop(): Promise<void>;
}

const idleMs = 30_000;
/** More wait for a thread than this only under attack. */
const maxWaiting = 32;

/** Builds them; there is no thread until one is needed. */
export function createCheckThreads({ threads, heapMib }: MemoryBounds["checks"]): CheckThreads {
  let pool: ThreadPool | undefined;
  return {
    async check({ body, signature }, network) {
      pool ??= createThreadPool({
        filename: fileURLToPath(new URL("check-worker.js", import.meta.url)),
        minThreads: 0,
        maxThreads: threads,
        idleTimeout: idleMs,
        maxQueue: maxWaiting,
        resourceLimits: { maxOldGenerationSizeMb: heapMib },
      });
      const task: CheckTask = { body, signature, network };
      let found: Finding | undefined;
      try {
        found = (await pool.run(task, { name: "check" })) as Finding | undefined;
      } catch {
        // The queue is full, or the thread has died: neither is the transaction's fault.
        throw new RpcError("OVERLOADED", "Too many large transactions are looked at; try again in 1 s.", 1);
      }
      if (found !== undefined) {
        throw new RpcError(found.reason, found.message);
      }
    },
    async stop() {
      await pool?.destroy();
    },
  };
}
