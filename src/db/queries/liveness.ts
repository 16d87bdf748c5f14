/** Tells a hung database from a busy one: a busy database still completes some queries, a hung one completes none. */

export interface LivenessMonitor {
  /**
   * Tracks a query from the start of its wait. Its end counts as a response, unless `isResponse` returns false for its
   * error.
   */
  track<T>(query: Promise<T>, isResponse: (error: unknown) => boolean): Promise<T>;
  /** Returns how long queries have waited while none completed, in milliseconds; 0 if none waits. */
  stalledMs(): number;
}

/** Creates a monitor that also tracks its queries in another monitor. */
export function livenessWithin(overall: LivenessMonitor): LivenessMonitor {
  const own = createLivenessMonitor();
  return {
    track: (query, isResponse) => own.track(overall.track(query, isResponse), isResponse),
    stalledMs: () => own.stalledMs(),
  };
}

/** Creates a monitor without queries. */
export function createLivenessMonitor(nowMs: () => number = () => performance.now()): LivenessMonitor {
  let waiting = 0;
  /** Time of the last response, or of the first query after an idle period. */
  let sinceMs = 0;
  return {
    async track(query, isResponse) {
      if (waiting++ === 0) {
        sinceMs = nowMs();
      }
      let hasResponded = true;
      try {
        return await query;
      } catch (error) {
        hasResponded = isResponse(error);
        throw error;
      } finally {
        waiting--;
        if (hasResponded) {
          sinceMs = nowMs();
        }
      }
    },
    stalledMs: () => (waiting > 0 ? nowMs() - sinceMs : 0),
  };
}
