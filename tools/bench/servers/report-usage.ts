/**
 * Preloaded into each measured process. Responds to the message "usage" with the usage so far. Server and load share
 * the machine, so the CPU time of the server is more reliable than requests per second.
 */

/** Resource usage of a process so far. */
export interface Usage {
  /** CPU time of all threads, user and system, in microseconds. */
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
