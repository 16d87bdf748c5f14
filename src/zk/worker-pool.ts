/** Thread pool for long computations. Threads start on demand, and end after 5 s without work. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../base/async/thread-pool.js";
import { fold, type FoldAll, type NodeRun } from "./fold.js";
import type { verifyGroth16 } from "./groth16.js";

/** Computations of this feature, which run on threads if they take long. */
export type ZkThreads = ReturnType<typeof createZkThreads>;

/** Number of leaves up to which trees are hashed on the calling thread, which takes some milliseconds. */
const inlineLeaves = 128;
const idleMs = 5_000;

/** Creates the thread pool. The pool has no threads until the first task needs one. */
export function createZkThreads(maxThreads: number) {
  let pool: ThreadPool | undefined;
  const run = async <T>(name: "fold" | "verifyGroth16", task: unknown): Promise<T> => {
    pool ??= createThreadPool({
      filename: fileURLToPath(new URL("worker.js", import.meta.url)),
      minThreads: 0,
      maxThreads,
      idleTimeout: idleMs,
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    return (await pool.run(task, { name })) as T;
  };
  const foldAll: FoldAll = async (tasks) => {
    const leaves = tasks.reduce((sum, { run: { hashes } }) => sum + hashes.length, 0);
    return leaves <= inlineLeaves
      ? tasks.map(fold)
      : await Promise.all(tasks.map((task) => run<NodeRun[]>("fold", task)));
  };
  return {
    foldAll,
    threads: maxThreads,
    verify: (task: Parameters<typeof verifyGroth16>[0]) => run<boolean>("verifyGroth16", task),
    stop: async () => await pool?.destroy(),
  };
}
