/**
 * Loaded into each process that is measured: answers "usage" with what the process has used so far. Server and load
 * share the machine, so the processor time of the server tells more than the requests a second.
 */

/** What a process has used so far. */
export interface Usage {
  /** Processor time of all threads, user and system, in microseconds. */
  readonly cpuUs: number;
  /** Resident memory in bytes. */
  readonly rssBytes: number;
}

process.on("message", (message) => {
  if (message === "usage") {
    const { user, system } = process.cpuUsage();
    const usage: Usage = {
      cpuUs: user + system,
      rssBytes: process.memoryUsage.rss(),
    };
    process.send?.({ usage });
  }
});
