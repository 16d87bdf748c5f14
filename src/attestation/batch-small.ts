/**
 * Hands presentations to the thread in the order in which they came: one at a time, or some together that are small. To tell
 * the thread, and to have it wait until it is told, costs a third of what verifying a small one does.
 */
import type { Verdict } from "./presentation.js";

/** Verifies presentations; the verdicts stand in their order. Rejects when the thread ended at one of them. */
export type VerifyAll = (presentations: readonly Uint8Array[]) => Promise<readonly Verdict[]>;

interface Waiting {
  readonly bytes: Uint8Array;
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

/** What is larger is handed over alone: what it takes is more than what telling of it does. */
const smallBytes = 16 * 1024;
/** So many take some milliseconds: whoever comes meanwhile waits no longer than behind one large presentation. */
const mostJoined = 8;

/** Builds the function by which one presentation is verified. It rejects as `verifyAll` does for that one alone. */
export function batchSmall(verifyAll: VerifyAll): (bytes: Uint8Array) => Promise<Verdict> {
  const waiting: Waiting[] = [];
  let isUnderWay = false;

  async function run(): Promise<void> {
    isUnderWay = true;
    while (waiting.length > 0) {
      await settle(waiting.splice(0, countJoined(waiting)));
    }
    isUnderWay = false;
  }

  async function settle(joined: readonly Waiting[]): Promise<void> {
    try {
      const verdicts = await verifyAll(joined.map(({ bytes }) => bytes));
      joined.forEach(({ resolve }, i) => resolve(verdicts[i]!));
    } catch (error) {
      if (joined.length === 1) {
        joined[0]!.reject(error);
        return;
      }
      // Nobody knows at which of them the thread ended.
      for (const one of joined) {
        await settle([one]);
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

/** How many of those that wait are handed over next. */
function countJoined(waiting: readonly Waiting[]): number {
  const large = waiting.findIndex(({ bytes }) => bytes.length > smallBytes);
  return Math.max(1, Math.min(large === -1 ? waiting.length : large, mostJoined));
}
