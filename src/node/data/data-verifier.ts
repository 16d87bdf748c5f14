/**
 * Verification of stored data on a running node: the latest blocks first, then everything, repeatedly. To save
 * resources, it pauses after each portion for a multiple of the time that the portion took.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Verification } from "../../base/errors/verification.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { SnapshotSyncStatus } from "../chain/snapshot-sync-status.js";
import { verifyAll, type VerifyDataDeps, verifyLatest } from "./verify-data.js";

/** Number of latest blocks that are verified right after the start. */
const latestBlocks = 100n;
/** Ratio of a pause to the duration of the portion before. With 19, verification runs for a twentieth of the time. */
const pauseRatio = 19;
/** Ratio of pauses while the latest blocks are verified: at most half of the time is used. */
const latestPauseRatio = 1;
const minPauseMs = 1;
const nextScanAfterMs = 24 * 3_600_000;
/** Delay in milliseconds after a verification that failed, because the database is unavailable or busy. */
const nextTryAfterMs = 60_000;
/**
 * Delay in milliseconds before the next verification while any corruption is known. A repair is thus noticed, whichever
 * read found the corruption and under whichever name.
 */
const nextCheckAfterMs = 10_000;

export type DataVerifier = ReturnType<typeof startDataVerifier>;

/** Starts the repeated verification, which waits while a snapshot sync is running. */
export function startDataVerifier(
  { bus, corruption, log, onShutdown }: Pick<NodeCore, "bus" | "corruption" | "log" | "onShutdown">,
  deps: VerifyDataDeps & { readonly syncStatus: Pick<SnapshotSyncStatus, "isRunning"> },
) {
  const { syncStatus } = deps;
  const stopped = new AbortController();
  const { signal } = stopped;
  const wait = (ms: number): Promise<void> => sleep(ms, undefined, { signal, ref: false });
  let [blocksDone, blocksTotal] = [0, 0];
  let completedMs: number | undefined;
  let reportedFindings: number | undefined;
  /** True if the disk was unreadable since the latest scan began, which may have hidden or withdrawn findings. */
  let wasUnreadable = false;
  bus.on("diskChanged", () => (wasUnreadable = true));

  /** Runs a verification with pauses. Returns the names of the corrupt items. */
  async function scan(verification: Verification, ratio: number): Promise<Set<string>> {
    const found = new Set<string>();
    let startMs = performance.now();
    for await (const portion of verification) {
      if (syncStatus.isRunning()) {
        throw new Error("A snapshot is being loaded.");
      }
      for (const { what, sentence } of portion.findings) {
        corruption.record(what, sentence);
        found.add(what);
      }
      if (portion.kind === "blocks") {
        [blocksDone, blocksTotal] = [portion.done, portion.total];
      }
      await wait(Math.max(minPauseMs, ratio * (performance.now() - startMs)));
      startMs = performance.now();
    }
    return found;
  }

  async function scanAll(): Promise<void> {
    const known = new Set(corruption.corruptItems().keys());
    const found = await scan(verifyAll(deps), pauseRatio);
    completedMs = Date.now();
    for (const what of known) {
      if (!found.has(what)) {
        corruption.record(what, undefined);
      }
    }
    const level = found.size > 0 ? "error" : "info";
    log[found.size === reportedFindings ? "debug" : level](
      { subsystem: "chain", findings: found.size },
      "All stored data was verified",
    );
    reportedFindings = found.size;
  }

  /** Repeats the verification until the node stops. */
  async function run(): Promise<void> {
    let isFirst = true;
    for (;;) {
      await waitWhile(() => syncStatus.isRunning(), wait);
      let pauseMs = nextScanAfterMs;
      try {
        if (isFirst) {
          await scan(verifyLatest(deps, latestBlocks), latestPauseRatio);
        }
        isFirst = false;
        wasUnreadable = false;
        await scanAll();
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ subsystem: "chain", err: error }, "The stored data could not be verified; retrying");
        pauseMs = nextTryAfterMs;
      }
      const untilMs = performance.now() + pauseMs;
      await wait(nextCheckAfterMs);
      const isScanDue = (): boolean =>
        wasUnreadable || corruption.corruptItems().size > 0 || performance.now() >= untilMs;
      await waitWhile(() => !isScanDue(), wait);
    }
  }

  const finished = run().catch(() => undefined);
  onShutdown("the data verifier", async () => {
    stopped.abort();
    await finished;
  });
  return {
    /**
     * Returns the progress: the end of the latest verification of everything, in Unix milliseconds, and the number of
     * items that are known to be corrupt.
     */
    state: () => ({ blocksDone, blocksTotal, completedMs, findings: corruption.corruptItems().size }),
  };
}

async function waitWhile(condition: () => boolean, wait: (ms: number) => Promise<void>): Promise<void> {
  while (condition()) {
    await wait(nextCheckAfterMs);
  }
}
