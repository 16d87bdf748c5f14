/**
 * The thread that verifies: a pool of one. Piscina keeps what waits, in order, puts another thread in the place of one
 * that ended, and rejects the task that it was at.
 */
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import { createThreadPool, type ThreadPool } from "../base/async/thread-pool.js";
import { RpcError } from "../rpc/errors.js";
import { batchSmall } from "./batch-small.js";
import { trappedCode, type Verdict, type VerifiedPresentation } from "./presentation.js";
import { watchThread } from "./thread-watch.js";
import type { WorkerSetup } from "./worker.js";

export interface WorkerPoolDeps extends WorkerSetup {
  /** How long one verification may take. */
  readonly timeoutMs: number;
  /** Hears of what ended a thread that was at no task. */
  readonly onProblem: (error: unknown) => void;
  /** Hears, once, that a thread could not be replaced: then the pool is of no more use. */
  readonly onBroken: (error: Error) => void;
}

export interface VerifierThread {
  /** Resolves when the first thread is ready; rejects when it cannot be started. */
  readonly ready: Promise<void>;
  /**
   * Verifies a presentation in bincode.
   *
   * @throws Failure INVALID_ATTESTATION, BUSY
   */
  verify(bytes: Uint8Array): Promise<VerifiedPresentation>;
  /** The thread, which may be ended at any time. */
  readonly thread: Worker | undefined;
  stop(): Promise<void>;
}

/** How long a thread may take to get ready. */
const startWithinMs = 15_000;
/** Heap of the thread beside its WebAssembly memory, for the arrays that the library makes of transcripts. */
const maxHeapMb = 64;

/** Builds the pool, and starts its thread. */
export function createWorkerPool({ timeoutMs, onProblem, onBroken, ...setup }: WorkerPoolDeps): VerifierThread {
  const pool = startPiscina(setup).on("error", onProblem);
  const watch = watchThread(pool, { taskWithinMs: timeoutMs, startWithinMs, onBroken });
  const verify = batchSmall(async (presentations) => {
    watch.begin();
    let verdicts: readonly Verdict[];
    try {
      verdicts = (await pool.run(presentations, { name: "verify" })) as readonly Verdict[];
    } catch (error) {
      throw explainEnd(error, watch.end() ? timeoutMs : undefined);
    }
    watch.end();
    return verdicts;
  });

  return {
    ready: pool.run(undefined, { name: "ready", signal: AbortSignal.timeout(startWithinMs) }) as Promise<void>,
    async verify(bytes) {
      const verdict = await verify(bytes);
      if ("refused" in verdict) {
        throw refused(verdict.refused);
      }
      return verdict.presentation;
    },
    get thread() {
      return pool.threads[0];
    },
    async stop() {
      watch.stop();
      await pool.destroy();
    },
  };
}

function startPiscina(workerData: WorkerSetup): ThreadPool {
  return createThreadPool({
    filename: fileURLToPath(new URL("worker.js", import.meta.url)),
    minThreads: 1,
    maxThreads: 1,
    // Otherwise what found the thread busy would be put behind what came after it.
    stricterFIFO: true,
    workerData,
    recordTiming: false,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: 8 },
  });
}

/** What the caller is told at whose presentation the thread ended, by itself or after so many milliseconds. */
function explainEnd(error: unknown, lateAfterMs: number | undefined): RpcError {
  if ((error as NodeJS.ErrnoException).code === trappedCode) {
    return refused("It is malformed.");
  }
  return busy(
    lateAfterMs === undefined
      ? "The verifier ended in the middle of it; try again in 1 s."
      : `It took longer than ${lateAfterMs / 1000} s; try again in 5 s.`,
  );
}

function refused(why: string): RpcError {
  return new RpcError("INVALID_ATTESTATION", `The attestation is refused. ${why}`);
}

/** The failure of what may succeed at another time. */
export function busy(why: string): RpcError {
  return new RpcError("BUSY", why, 5);
}
