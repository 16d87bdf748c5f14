/** The threads for long arithmetic: started when there is work, ended when there has been none for a while. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { Failure } from "../rpc/errors.js";
import { fold, type FoldAll, type NodeRun } from "./fold.js";
import type { verifyGroth16 } from "./groth16.js";

/** The arithmetic of this feature, done elsewhere where it takes long. */
export interface WorkerPool {
  readonly foldAll: FoldAll;
  /** Rejects with the Failure OVERLOADED when too many wait already. */
  verify(task: Parameters<typeof verifyGroth16>[0]): Promise<boolean>;
  stop(): Promise<void>;
}

/** Up to so many leaves are folded at once, without a thread: some milliseconds. */
const inlineLeaves = 128;
/** Most proofs that wait to be verified. */
const maxWaiting = 64;
const idleMs = 5_000;
const maxThreads = Math.max(1, Math.min(4, availableParallelism()));

/** Builds the pool; it has no thread until one is needed. */
export function createWorkerPool(): WorkerPool {
  let pool: Piscina | undefined;
  const run = async <T>(name: "fold" | "verifyGroth16", task: unknown): Promise<T> => {
    pool ??= new Piscina({
      filename: fileURLToPath(new URL("worker.js", import.meta.url)),
      minThreads: 0,
      maxThreads,
      idleTimeout: idleMs,
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    return (await pool.run(task, { name })) as T;
  };
  return {
    async foldAll(tasks) {
      const leaves = tasks.reduce((sum, { run: { hashes } }) => sum + hashes.length, 0);
      return leaves <= inlineLeaves
        ? tasks.map(fold)
        : await Promise.all(tasks.map((task) => run<NodeRun[]>("fold", task)));
    },
    async verify(task) {
      if (pool !== undefined && pool.queueSize >= maxWaiting) {
        throw new Failure("OVERLOADED", "Too many proofs wait to be verified; try again in 5 s.", 5);
      }
      return await run<boolean>("verifyGroth16", task);
    },
    async stop() {
      await pool?.destroy();
    },
  };
}
