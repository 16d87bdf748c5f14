/**
 * Pool with the one thread that verifies. Piscina queues tasks in order, replaces a thread that ended, and rejects the
 * task that was in progress.
 */
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import { createThreadPool, type ThreadPool } from "../base/async/thread-pool.js";
import { RpcError } from "../rpc/errors.js";
import { batchSmall } from "./batch-small.js";
import { trappedCode, type Verdict, type VerifiedPresentation } from "./presentation.js";
import { monitorThread } from "./thread-watch.js";
import type { WorkerSetup } from "./worker.js";

export interface WorkerPoolDeps extends WorkerSetup {
  /** Time limit for one verification in milliseconds. */
  readonly timeoutMs: number;
  /** Called with the error of a thread that ended outside of a task. */
  readonly onProblem: (error: unknown) => void;
  /** Called once if a thread could not be replaced. The pool is then no longer usable. */
  readonly onBroken: (error: Error) => void;
}

export interface VerifierThread {
  /** Resolves when the first thread is ready; rejects if the thread cannot be started. */
  readonly ready: Promise<void>;
  /**
   * Verifies a presentation in bincode.
   *
   * @throws RpcError INVALID_ATTESTATION, BUSY
   */
  verify(bytes: Uint8Array): Promise<VerifiedPresentation>;
  /** Worker thread, which tests may end at any time. */
  readonly thread: Worker | undefined;
  stop(): Promise<void>;
}

/** Time limit in milliseconds for the start of a thread. */
const startWithinMs = 15_000;
/**
 * Heap limit in MiB, in addition to the WebAssembly memory, for the arrays that the library creates from transcripts.
 */
const maxHeapMb = 64;

/** Creates the pool and starts its thread. */
export function createWorkerPool({ timeoutMs, onProblem, onBroken, ...setup }: WorkerPoolDeps): VerifierThread {
  const pool = createPool(setup).on("error", onProblem);
  const monitor = monitorThread(pool, { taskWithinMs: timeoutMs, startWithinMs, onBroken });
  const verify = batchSmall(async (presentations) => {
    monitor.start();
    let verdicts: readonly Verdict[];
    try {
      verdicts = (await pool.run(presentations, { name: "verify" })) as readonly Verdict[];
    } catch (error) {
      throw errorForEndedThread(error, monitor.end() ? timeoutMs : undefined);
    }
    monitor.end();
    return verdicts;
  });

  return {
    ready: pool.run(undefined, { name: "ready", signal: AbortSignal.timeout(startWithinMs) }) as Promise<void>,
    async verify(bytes) {
      const verdict = await verify(bytes);
      if ("rejected" in verdict) {
        throw rejected(verdict.rejected);
      }
      return verdict.presentation;
    },
    get thread() {
      return pool.threads[0];
    },
    async stop() {
      monitor.stop();
      await pool.destroy();
    },
  };
}

function createPool(workerData: WorkerSetup): ThreadPool {
  return createThreadPool({
    filename: fileURLToPath(new URL("worker.js", import.meta.url)),
    minThreads: 1,
    maxThreads: 1,
    // Otherwise Piscina would queue a task that found the thread busy behind later tasks.
    stricterFIFO: true,
    workerData,
    recordTiming: false,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 8 },
  });
}

/**
 * Returns the error for a presentation during which the thread ended.
 *
 * @param exceededMs Time limit in milliseconds if the thread was ended for exceeding it; undefined if it ended by
 *   itself.
 */
function errorForEndedThread(error: unknown, exceededMs: number | undefined): RpcError {
  if ((error as NodeJS.ErrnoException).code === trappedCode) {
    return rejected("It is malformed.");
  }
  return busy(
    exceededMs === undefined
      ? "The verifier stopped while it verified this attestation; try again in 1 s."
      : `It took longer than ${exceededMs / 1000} s; try again in 5 s.`,
  );
}

function rejected(why: string): RpcError {
  return new RpcError("INVALID_ATTESTATION", `The attestation is rejected. ${why}`);
}

/** Returns an error that asks the caller to retry in 5 s. */
export function busy(why: string): RpcError {
  return new RpcError("BUSY", why, 5);
}
