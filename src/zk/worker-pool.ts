/** The threads for long arithmetic: started when there is work, ended when there has been none for a while. */
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../base/async/thread-pool.js";
import { fold, type FoldAll, type NodeRun } from "./fold.js";
import type { verifyGroth16 } from "./groth16.js";

/** The arithmetic of this feature, done elsewhere where it takes long. */
export interface ZkThreads {
  readonly foldAll: FoldAll;
  /** How many threads there are at most. */
  readonly threads: number;
  verify(task: Parameters<typeof verifyGroth16>[0]): Promise<boolean>;
  stop(): Promise<void>;
}

/** Up to so many leaves are folded at once, without a thread: some milliseconds. */
const inlineLeaves = 128;
const idleMs = 5_000;

/** Builds the pool of so many threads at most; it has none until one is needed. */
export function createZkThreads(maxThreads: number): ZkThreads {
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
  return {
    async foldAll(tasks) {
      const leaves = tasks.reduce((sum, { run: { hashes } }) => sum + hashes.length, 0);
      return leaves <= inlineLeaves
        ? tasks.map(fold)
        : await Promise.all(tasks.map((task) => run<NodeRun[]>("fold", task)));
    },
    threads: maxThreads,
    verify: (task) => run<boolean>("verifyGroth16", task),
    async stop() {
      await pool?.destroy();
    },
  };
}
