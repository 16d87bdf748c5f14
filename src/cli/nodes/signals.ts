/** Running until SIGINT or SIGTERM. */
import { setFlagsFromString } from "node:v8";
import { StartAborted } from "../../base/errors/start-error.js";

const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Starts something, waits for SIGINT or SIGTERM, stops it, and ends the process with code 0. A signal that comes while
 * it starts ends the start. A second signal ends the process at once with 128 and the signal's number.
 *
 * @param start gives what stops it; rejects when its signal is aborted, after it has stopped what had begun. It may call
 * `fail` later on, when nothing runs any more.
 * @param onHangUp is called at each SIGHUP; without it, that one stops what runs as well.
 * @throws what `start` throws by itself, or fails with later, and what stopping throws.
 */
export async function runUntilSignal(
  start: (signal: AbortSignal, fail: (error: unknown) => void) => Promise<() => Promise<void>>,
  onHangUp?: () => void,
): Promise<never> {
  // Whoever read its output may go; what runs goes on.
  process.stdout.removeAllListeners("error").on("error", () => undefined);
  const controller = new AbortController();
  const { signal } = controller;
  const stopAt = (name: keyof typeof signalNumbers): void => {
    process.on(name, () => {
      if (signal.aborted) {
        process.exit(128 + signalNumbers[name]);
      }
      controller.abort();
    });
  };
  stopAt("SIGINT");
  stopAt("SIGTERM");
  if (onHangUp === undefined) {
    stopAt("SIGHUP");
  } else {
    process.on("SIGHUP", onHangUp);
  }
  try {
    let fail: (error: unknown) => void = () => undefined;
    const ended = new Promise((resolve, reject) => {
      signal.addEventListener("abort", resolve);
      fail = reject;
    });
    ended.catch(() => undefined);
    const stop = await start(signal, fail);
    // What serves is worth the room for young objects that what starts was not (main.ts).
    setFlagsFromString("--semi-space-growth-factor=2");
    if (!signal.aborted) {
      await ended;
    }
    await stop();
  } catch (error) {
    if (!(error instanceof StartAborted)) {
      throw error;
    }
  }
  process.exit(0);
}
