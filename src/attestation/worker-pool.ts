/**
 * Pool with the one thread that verifies. Piscina queues tasks in order, replaces a thread that ended, and rejects the
 * task that was in progress.
 */
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createThreadPool, type ThreadPool } from "../base/async/thread-pool.js";
import { RpcError } from "../rpc/errors.js";
import { trappedCode, type Verdict, type VerifiedPresentation } from "./presentation.js";
import type { WorkerSetup } from "./worker.js";

/** Time limit in milliseconds for the start of a thread. */
const startWithinMs = 15_000;
/**
 * Heap limit in MiB, in addition to the WebAssembly memory, for the arrays that the library creates from transcripts.
 */
const maxHeapMb = 64;

/**
 * Creates the pool and starts its thread.
 *
 * @param timeoutMs time limit for one verification in milliseconds.
 * @param onProblem called with the error of a thread that ended outside of a task.
 * @param onBroken called once if a thread could not be replaced. The pool is then no longer usable.
 */
export function createWorkerPool(
  setup: WorkerSetup,
  timeoutMs: number,
  onProblem: (error: unknown) => void,
  onBroken: (error: Error) => void,
) {
  const pool = createPool(setup).on("error", onProblem);
  const stopped = new AbortController();
  /** Limits the start of a replacement thread; undefined while a thread can run tasks. */
  let startTimer: NodeJS.Timeout | undefined;

  function stopMonitor(): void {
    stopped.abort();
    clearTimeout(startTimer);
  }

  function fail(why: string): void {
    if (!stopped.signal.aborted) {
      stopMonitor();
      onBroken(new Error(why));
    }
  }

  // If threads fail while they start, Piscina lets tasks wait forever.
  pool.on("workerDestroy", () => {
    if (startTimer !== undefined) {
      fail("its thread ended while it started");
    } else if (!stopped.signal.aborted) {
      startTimer = setTimeout(() => fail(`its thread did not start within ${startWithinMs / 1000} s`), startWithinMs);
    }
  });
  pool.on("workerCreate", () => {
    clearTimeout(startTimer);
    startTimer = undefined;
  });

  // The pool gets one task at a time, so the limit of a task includes no waiting time.
  const verify = batchSmall(async (presentations): Promise<readonly Verdict[]> => {
    if (startTimer !== undefined) {
      await once(pool, "workerCreate", { signal: stopped.signal });
    }
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return (await pool.run(presentations, { name: "verify", signal })) as readonly Verdict[];
    } catch (error) {
      throw errorForEndedThread(error, signal.aborted ? timeoutMs : undefined);
    }
  });

  return {
    ready: pool.run(undefined, { name: "ready", signal: AbortSignal.timeout(startWithinMs) }) as Promise<void>,
    /**
     * Verifies a presentation in bincode.
     *
     * @throws RpcError INVALID_ATTESTATION, BUSY
     */
    async verify(bytes: Uint8Array): Promise<VerifiedPresentation> {
      const verdict = await verify(bytes);
      if ("rejected" in verdict) {
        throw rejected(verdict.rejected);
      }
      return verdict.presentation;
    },
    get thread() {
      return pool.threads[0];
    },
    async stop(): Promise<void> {
      stopMonitor();
      await pool.destroy();
    },
  };
}

function createPool(workerData: WorkerSetup): ThreadPool {
  return createThreadPool({
    filename: fileURLToPath(new URL("worker.js", import.meta.url)),
    minThreads: 1,
    maxThreads: 1,
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

export function busy(why: string): RpcError {
  return new RpcError("BUSY", why, 5);
}

/** Verifies presentations and returns the verdicts in the same order. Rejects if the thread ended while verifying. */
export type VerifyAll = (presentations: readonly Uint8Array[]) => Promise<readonly Verdict[]>;

interface PendingPresentation {
  readonly bytes: Uint8Array;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

/** Size limit for batching. The message to the thread costs little compared with verifying a larger presentation. */
const smallBytes = 16 * 1024;
/**
 * Batch limit. A full batch takes a few milliseconds, so that a caller waits no longer than behind one large
 * presentation.
 */
const maxBatch = 8;

/**
 * Creates the function that passes presentations to the thread in order of arrival: a large one alone, small ones in
 * batches. A message to the thread and back costs a third of the time that verifying a small presentation takes. The
 * function rejects as `verifyAll` does for that presentation alone.
 */
export function batchSmall(verifyAll: VerifyAll): (bytes: Uint8Array) => Promise<Verdict> {
  const queue: PendingPresentation[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (queue.length > 0) {
      await verifyBatch(queue.splice(0, nextBatchSize(queue)));
    }
    isRunning = false;
  }

  async function verifyBatch(batch: readonly PendingPresentation[]): Promise<void> {
    try {
      const verdicts = await verifyAll(batch.map(({ bytes }) => bytes));
      batch.forEach(({ resolve }, i) => resolve(verdicts[i]!));
    } catch (error) {
      if (batch.length === 1) {
        batch[0]!.reject(error);
        return;
      }
      // It is unknown which presentation ended the thread: verify each separately.
      for (const pending of batch) {
        await verifyBatch([pending]);
      }
    }
  }

  return (bytes) =>
    new Promise((resolve, reject) => {
      queue.push({ bytes, resolve, reject });
      if (!isRunning) {
        void run();
      }
    });
}

function nextBatchSize(queue: readonly PendingPresentation[]): number {
  const large = queue.findIndex(({ bytes }) => bytes.length > smallBytes);
  return Math.max(1, Math.min(large === -1 ? queue.length : large, maxBatch));
}
