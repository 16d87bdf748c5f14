/** Whether a database answers anything while it is asked: one that has much to do does, and one that hangs does not. */

export interface LivenessMonitor {
  /** Counts a query from when it begins to wait for its turn, and its end for an answer, but for errors that are none. */
  count<T>(query: Promise<T>, isAnswer: (error: unknown) => boolean): Promise<T>;
  /** How long queries have waited without an answer to any of them; 0 while none waits. */
  stalledMs(): number;
}

/** A pulse whose queries count for another one as well. */
export function livenessWithin(whole: LivenessMonitor): LivenessMonitor {
  const own = createLivenessMonitor();
  return {
    count: (query, isAnswer) => own.count(whole.count(query, isAnswer), isAnswer),
    stalledMs: () => own.stalledMs(),
  };
}

/** Builds the pulse of a part of a database, of which nobody has asked anything yet. */
export function createLivenessMonitor(nowMs: () => number = () => performance.now()): LivenessMonitor {
  let waiting = 0;
  /** When the last answer came, or the first began to wait where none did before. */
  let sinceMs = 0;
  return {
    async count(query, isAnswer) {
      if (waiting++ === 0) {
        sinceMs = nowMs();
      }
      let answered = true;
      try {
        return await query;
      } catch (error) {
        answered = isAnswer(error);
        throw error;
      } finally {
        waiting--;
        if (answered) {
          sinceMs = nowMs();
        }
      }
    },
    stalledMs: () => (waiting > 0 ? nowMs() - sinceMs : 0),
  };
}
