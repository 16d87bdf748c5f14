/** Running until SIGINT or SIGTERM. */
import { StartAborted } from "../base/start-error.js";

const signalNumbers = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Starts something, waits for SIGINT or SIGTERM, stops it, and ends the process with code 0. A signal that comes while
 * it starts ends the start. A second signal ends the process at once with 128 and the signal's number.
 *
 * @param start gives what stops it; rejects when its signal is aborted, after it has stopped what had begun.
 * @throws what `start` throws by itself, and what stopping throws.
 */
export async function runUntilSignal(start: (signal: AbortSignal) => Promise<() => Promise<void>>): Promise<never> {
  const controller = new AbortController();
  const { signal } = controller;
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (signal.aborted) {
        process.exit(128 + signalNumbers[name]);
      }
      controller.abort();
    });
  }
  try {
    const stop = await start(signal);
    if (!signal.aborted) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    }
    await stop();
  } catch (error) {
    if (!(error instanceof StartAborted)) {
      throw error;
    }
  }
  process.exit(0);
}
