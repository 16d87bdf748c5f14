/**
 * The walk of a running node over what it has stored: the newest blocks at once, then everything, and again and again. It
 * takes little of the machine: after each portion it pauses for many times as long as the portion took.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Finding, Verification, VerifiedPortion } from "../../base/errors/verification.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { SnapshotSyncStatus } from "../chain/snapshot-sync-status.js";
import { verifyAll, type VerifyDataDeps, verifyNewest } from "./verify-data.js";

/** Blocks that are looked at at once. */
const newestBlocks = 100n;
/** A portion that took so long is followed by a pause that makes it a twentieth of the time. */
const pauseRatio = 19;
/** The newest blocks take at most half of the time. */
const newestPauseRatio = 1;
const minPauseMs = 1;
const nextWalkAfterMs = 24 * 3_600_000;
/** After a walk that could not go on, since the database is away, or busy. */
const nextTryAfterMs = 60_000;
/** While something does not fit, so that it is noticed when it is right again, whoever found it and by whatever name. */
const nextLookAfterMs = 10_000;

/** How far the walk is. */
export interface VerifierState {
  readonly blocksDone: number;
  readonly blocksTotal: number;
  /** End of the newest walk over everything; undefined before the first. */
  readonly completedMs: number | undefined;
  /** What does not fit, now. */
  readonly findings: number;
}

export interface DataVerifier {
  state(): VerifierState;
}

/** Begins to walk; while a snapshot is taken in, there is nothing to walk over. */
export function startDataVerifier(
  { damage, log, onShutdown: onStop }: NodeCore,
  deps: VerifyDataDeps & { readonly joining: Pick<SnapshotSyncStatus, "isRunning"> },
): DataVerifier {
  const { joining } = deps;
  const stopped = new AbortController();
  const { signal } = stopped;
  const wait = (ms: number): Promise<void> => sleep(ms, undefined, { signal, ref: false });
  let [blocksDone, blocksTotal] = [0, 0];
  let completedMs: number | undefined;
  let toldFindings: number | undefined;

  function tell(findings: readonly Finding[]): void {
    for (const { what, sentence } of findings) {
      damage.found(what, sentence);
    }
  }

  /** Gives what does not fit. */
  async function walk(verification: Verification, ratio: number): Promise<Set<string>> {
    const found = new Set<string>();
    let before = performance.now();
    for await (const portion of verification) {
      if (joining.isRunning()) {
        throw new Error("A snapshot is being taken in.");
      }
      tell(portion.findings);
      portion.findings.forEach(({ what }) => found.add(what));
      count(portion);
      await wait(Math.max(minPauseMs, ratio * (performance.now() - before)));
      before = performance.now();
    }
    return found;
  }

  function count({ kind, done, total }: VerifiedPortion): void {
    if (kind === "blocks") {
      [blocksDone, blocksTotal] = [done, total];
    }
  }

  async function walkOverAll(): Promise<void> {
    const known = new Set(damage.known().keys());
    const found = await walk(verifyAll(deps), pauseRatio);
    completedMs = Date.now();
    for (const what of known) {
      if (!found.has(what)) {
        damage.found(what, undefined);
      }
    }
    const level = found.size > 0 ? "error" : "info";
    log[found.size === toldFindings ? "debug" : level](
      { subsystem: "chain", findings: found.size },
      "Everything that is stored was looked at",
    );
    toldFindings = found.size;
  }

  async function go(): Promise<void> {
    let isFirst = true;
    for (;;) {
      await waitWhile(() => joining.isRunning(), wait);
      let pauseMs = nextWalkAfterMs;
      try {
        if (isFirst) {
          await walk(verifyNewest(deps, newestBlocks), newestPauseRatio);
        }
        isFirst = false;
        await walkOverAll();
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ subsystem: "chain", err: error }, "What is stored could not be looked at; it is tried again");
        pauseMs = nextTryAfterMs;
      }
      const untilMs = performance.now() + pauseMs;
      await wait(nextLookAfterMs);
      await waitWhile(() => damage.known().size === 0 && performance.now() < untilMs, wait);
    }
  }

  const ended = go().catch(() => undefined);
  onStop("the walk over what is stored", async () => {
    stopped.abort();
    await ended;
  });
  return {
    state: () => ({ blocksDone, blocksTotal, completedMs, findings: damage.known().size }),
  };
}

async function waitWhile(isSo: () => boolean, wait: (ms: number) => Promise<void>): Promise<void> {
  while (isSo()) {
    await wait(nextLookAfterMs);
  }
}
