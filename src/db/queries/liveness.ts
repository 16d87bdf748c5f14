/** Tells a hung database from a busy one: a busy database still completes some queries, a hung one completes none. */

export interface LivenessMonitor {
  /**
   * Counts a query from the start of its wait. Its end counts as a response, unless `isAnswer` returns false for its
   * error.
   */
  count<T>(query: Promise<T>, isAnswer: (error: unknown) => boolean): Promise<T>;
  /** Returns how long queries have waited while none completed, in milliseconds; 0 if none waits. */
  stalledMs(): number;
}

/** Creates a monitor that also counts its queries in another monitor. */
export function livenessWithin(whole: LivenessMonitor): LivenessMonitor {
  const own = createLivenessMonitor();
  return {
    count: (query, isAnswer) => own.count(whole.count(query, isAnswer), isAnswer),
    stalledMs: () => own.stalledMs(),
  };
}

/** Creates a monitor without queries. */
export function createLivenessMonitor(nowMs: () => number = () => performance.now()): LivenessMonitor {
  let waiting = 0;
  /** Time of the last response, or of the first query after an idle period. */
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
