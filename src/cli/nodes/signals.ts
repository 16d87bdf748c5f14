/** Run loop of a command that runs until SIGINT or SIGTERM. */
import { setFlagsFromString } from "node:v8";
import { StartAborted } from "../../base/errors/start-error.js";

/** Service that a command runs. */
export interface Service {
  /** Announces the stop to clients. Resolves once the service may stop, at the latest when `hurry` aborts. */
  announceStop?(hurry: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a service, waits for SIGINT or SIGTERM, stops the service, and ends the process with code 0. A signal during
 * the start aborts the start. A signal while the stop is announced makes the service stop at once. Any other second
 * signal ends the process immediately with 128 plus the number of the signal.
 *
 * @param start Returns the service. If its signal is aborted, `start` stops what it has started and rejects. It may call
 *   `fail` later, once the service no longer runs.
 * @param onHangUp Called at each SIGHUP; without it, SIGHUP stops the service as well.
 * @throws Errors of `start` other than the abort, errors passed to `fail`, and errors of the stop.
 */
export async function runUntilSignal(
  start: (signal: AbortSignal, fail: (error: unknown) => void) => Promise<Service>,
  onHangUp?: () => void,
): Promise<never> {
  // The reader of the output may disappear; the service continues.
  process.stdout.removeAllListeners("error").on("error", () => undefined);
  const controller = new AbortController();
  const { signal } = controller;
  let announcement: AbortController | undefined;
  const stop = (_: string, number: number): void => {
    if (!signal.aborted) {
      controller.abort();
    } else if (announcement === undefined) {
      process.exit(128 + number);
    } else {
      announcement.abort();
    }
  };
  process.on("SIGINT", stop).on("SIGTERM", stop);
  process.on("SIGHUP", onHangUp ?? stop);
  try {
    let fail: (error: unknown) => void = () => undefined;
    const ended = new Promise((resolve, reject) => {
      signal.addEventListener("abort", resolve);
      fail = reject;
    });
    ended.catch(() => undefined);
    const service = await start(signal, fail);
    // A running service benefits from a larger young generation, unlike the start of a command (main.ts).
    setFlagsFromString("--semi-space-growth-factor=2");
    if (!signal.aborted) {
      await ended;
      announcement = new AbortController();
      await service.announceStop?.(announcement.signal);
      announcement = undefined;
    }
    await service.stop();
  } catch (error) {
    if (!(error instanceof StartAborted)) {
      throw error;
    }
  }
  process.exit(0);
}
