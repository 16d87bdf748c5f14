/**
 * Passes presentations to the verifier thread in order of arrival: a large one alone, small ones in batches. A message
 * to the thread and back costs a third of the time that verifying a small presentation takes.
 */
import type { Verdict } from "./presentation.js";

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

/** Creates the function that verifies one presentation. It rejects as `verifyAll` does for that presentation alone. */
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
