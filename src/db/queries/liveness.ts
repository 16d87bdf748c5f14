/** Tells a hung database from a busy one: a busy database still completes some queries, a hung one completes none. */
export class LivenessMonitor {
  #waiting = 0;
  /** Time of the last response, or of the first query after an idle period. */
  #sinceMs = 0;

  /** @param overall monitor that tracks the queries as well. */
  constructor(private readonly overall?: LivenessMonitor) {}

  /**
   * Tracks a query from the start of its wait. Its end counts as a response, unless `isResponse` returns false for its
   * error.
   */
  async track<T>(query: Promise<T>, isResponse: (error: unknown) => boolean): Promise<T> {
    if (this.#waiting++ === 0) {
      this.#sinceMs = performance.now();
    }
    let hasResponded = true;
    try {
      return await (this.overall === undefined ? query : this.overall.track(query, isResponse));
    } catch (error) {
      hasResponded = isResponse(error);
      throw error;
    } finally {
      this.#waiting--;
      if (hasResponded) {
        this.#sinceMs = performance.now();
      }
    }
  }

  /** Returns how long queries have waited while none completed, in milliseconds; 0 if none waits. */
  stalledMs(): number {
    return this.#waiting > 0 ? performance.now() - this.#sinceMs : 0;
  }
}
