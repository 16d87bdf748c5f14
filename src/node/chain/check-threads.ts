/** Threads that check large transactions, so that a document of 1 MiB does not delay other requests. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../../base/async/thread-pool.js";
import type { CheckOffThread } from "../../chain/transactions/off-thread-checks.js";
import { RpcError } from "../../rpc/errors.js";
import type { MemoryLimits } from "../lifecycle/memory-budget.js";
import type { CheckTask, Finding } from "./check-worker.js";

export interface CheckThreads {
  readonly check: CheckOffThread;
  stop(): Promise<void>;
}

const idleMs = 30_000;
/** Limit on checks that wait for a thread. Only an attack exceeds the limit. */
const maxWaiting = 32;

/** Creates the thread pool. Threads start on demand and end after 30 s without work. */
export function createCheckThreads({ threads, heapMib }: MemoryLimits["checks"]): CheckThreads {
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
        // The queue is full, or the thread died. Neither means that the transaction is invalid.
        throw new RpcError("OVERLOADED", "Too many large transactions are being checked; try again in 1 s.", 1);
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
