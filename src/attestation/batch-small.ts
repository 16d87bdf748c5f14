/**
 * Passes presentations to the verifier thread in order of arrival: a large one alone, small ones in batches. A message
 * to the thread and back costs a third of the time that verifying a small presentation takes.
 */
import type { Verdict } from "./presentation.js";

/** Verifies presentations and returns the verdicts in the same order. Rejects if the thread ended while verifying. */
export type VerifyAll = (presentations: readonly Uint8Array[]) => Promise<readonly Verdict[]>;

interface Waiting {
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
const maxJoined = 8;

/** Creates the function that verifies one presentation. It rejects as `verifyAll` does for that presentation alone. */
export function batchSmall(verifyAll: VerifyAll): (bytes: Uint8Array) => Promise<Verdict> {
  const waiting: Waiting[] = [];
  let isUnderWay = false;

  async function run(): Promise<void> {
    isUnderWay = true;
    while (waiting.length > 0) {
      await verifyJoined(waiting.splice(0, countJoined(waiting)));
    }
    isUnderWay = false;
  }

  async function verifyJoined(joined: readonly Waiting[]): Promise<void> {
    try {
      const verdicts = await verifyAll(joined.map(({ bytes }) => bytes));
      joined.forEach(({ resolve }, i) => resolve(verdicts[i]!));
    } catch (error) {
      if (joined.length === 1) {
        joined[0]!.reject(error);
        return;
      }
      // It is unknown which presentation ended the thread: verify each separately.
      for (const one of joined) {
        await verifyJoined([one]);
      }
    }
  }

  return (bytes) =>
    new Promise((resolve, reject) => {
      waiting.push({ bytes, resolve, reject });
      if (!isUnderWay) {
        void run();
      }
    });
}

/** Returns the size of the next batch. */
function countJoined(waiting: readonly Waiting[]): number {
  const large = waiting.findIndex(({ bytes }) => bytes.length > smallBytes);
  return Math.max(1, Math.min(large === -1 ? waiting.length : large, maxJoined));
}
