/** Stopping on SIGINT and SIGTERM. */

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Waits for SIGINT or SIGTERM, stops what runs, and ends the process with code 0. A second signal ends it at once with
 * 128 and the signal's number.
 */
export async function stopOnSignals(stop: () => Promise<void>): Promise<never> {
  await new Promise<void>((resolve) => {
    let signalled = false;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        if (signalled) {
          process.exit(128 + signalNumbers[signal]);
        }
        signalled = true;
        resolve();
      });
    }
  });
  await stop();
  process.exit(0);
}
