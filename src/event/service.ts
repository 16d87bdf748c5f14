/**
 * Event service. A subscriber is a cursor into the block log; the stream sends the events after this cursor. Live events,
 * such as rejections and signed heads, are outside of blocks: they are sent to current subscribers only, and not stored.
 */
import { EventKind, type EventService, TransactionOutcome } from "../../gen/gatehouse/event/v1/event_pb.js";
import type { HeadStatement, SignedHead } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { createFairTurns } from "../base/async/fair-scheduler.js";
import { eachYielding, requestWork } from "../base/async/yielding.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { cursorText, type EventMessage, type EventSubject, positionOfBlock } from "./block-events.js";
import { blockAfter, type BlockLog } from "./block-log.js";
import { type CursorPosition, readWatchRequest } from "./watch-request.js";

interface EventServiceDeps {
  readonly head: () => { readonly number: bigint; readonly lowestBlock: bigint } | undefined;
  readonly log: BlockLog;
  /** Throws RpcError PRUNED for a block whose transactions are not retained. */
  readonly checkRetained: (number: bigint, lowest: bigint) => void;
  /** Interval between progress messages while the stream scans blocks without matching events, in ms. Default: 10 s. */
  readonly progressEveryMs?: number;
  /** Wait in milliseconds for the block of a cursor that is ahead of the chain. Default: 5 s. */
  readonly cursorWaitMs?: number;
}

const defaultProgressEveryMs = 10_000;
const defaultCursorWaitMs = 5_000;
/** Delay in seconds after which clients should retry. */
const retryAfterS = 5;
/** Limit on the blocks that all streams together search in one tick. One block takes at most 0.3 ms. */
const blocksPerTick = 4;

export function createEvents(deps: EventServiceDeps) {
  const { log, checkRetained, progressEveryMs = defaultProgressEveryMs, cursorWaitMs = defaultCursorWaitMs } = deps;
  const notifier = createNotifier();
  const live = createLiveEvents();
  const blockTurn = createFairTurns(blocksPerTick);

  /** Returns the latest block. Throws RpcError STATE_NOT_READY if there is none. */
  function requireHead() {
    const head = deps.head();
    if (head === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no blocks yet; use another node, or try again later.");
    }
    return head;
  }

  /**
   * Waits until the chain has the block of a cursor, which may come from a node that is ahead of this one.
   *
   * @throws RpcError STATE_NOT_READY if the block does not arrive in time.
   */
  async function waitForCursor({ block }: CursorPosition, signal: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(cursorWaitMs);
    const ended = AbortSignal.any([signal, late]);
    while (requireHead().number < block && !signal.aborted && !notifier.isClosed()) {
      if (late.aborted) {
        throw new RpcError(
          "STATE_NOT_READY",
          `The cursor is of block ${block}, and this node is at block ${requireHead().number}. The node is behind: ` +
            `try again in ${retryAfterS} s, or use another node. If the cursor is from another network, or from before ` +
            "a restore, start without it.",
          retryAfterS,
        );
      }
      await notifier.wait(ended);
    }
  }

  async function* watch(
    ...[request, { caller, signal }]: Parameters<Implementation<typeof EventService>["watch"]>
  ): AsyncGenerator<EventMessage, void> {
    const decoded = readWatchRequest(request);
    const reader = { identity: caller.identity, turn: () => blockTurn(caller.address) };
    if (decoded.cursor !== undefined) {
      await waitForCursor(decoded.cursor, signal);
    }
    const { number, lowestBlock } = requireHead();
    let position = decoded.after ?? { block: number, position: positionOfBlock };
    checkRetained(blockAfter(position), lowestBlock);
    let liveSequence = live.latest();
    let last: { readonly cursor?: string; readonly sentAtMs: number } = { sentAtMs: -Infinity };
    let hasCaughtUp = false;
    while (!signal.aborted && !notifier.isClosed()) {
      const liveEvent = live.after(liveSequence);
      const next = blockAfter(position);
      const { number: latest } = requireHead();
      let message: EventMessage | undefined;
      if (liveEvent !== undefined) {
        liveSequence = liveEvent.sequence;
        message = decoded.matches(liveEvent, true) ? toMessage(sentUpTo(position, latest), liveEvent.event) : undefined;
      } else if (next <= latest) {
        // The stream retains only the position, not the block: the subscriber may read arbitrarily slowly.
        ({ position, message } = await log.next(position, decoded, reader));
        message ??= performance.now() - last.sentAtMs >= progressEveryMs ? toMessage(position, progress) : undefined;
      } else if (hasCaughtUp) {
        await notifier.wait(signal);
      } else {
        // Reports to the subscriber that it has caught up. The cursor is the position to resume from if the stream
        // ends before the next event.
        hasCaughtUp = true;
        const report = toMessage(sentUpTo(position, latest), progress);
        message = report.cursor === last.cursor ? undefined : report;
      }
      if (message !== undefined) {
        yield message;
        last = { cursor: message.cursor!, sentAtMs: performance.now() };
      }
    }
  }

  const service: Implementation<typeof EventService> = { watch };
  return {
    service,
    /** Reports that there may be new blocks. */
    notify: () => notifier.notify(),
    /** Reports a transaction that can never be included in a block. */
    rejected({ hash, reason }: { readonly hash: string; readonly reason: string }): void {
      const value = { hash, outcome: TransactionOutcome.REJECTED, reason };
      const subject = { kind: EventKind.TRANSACTION, transaction: hash, address: undefined };
      live.add({ ...subject, event: { case: "transaction", value } });
      notifier.notify();
    },
    /** Reports a signed head of an authority. */
    headSigned(statement: HeadStatement, signed: SignedHead): void {
      const subject = { kind: EventKind.HEAD, transaction: undefined, address: undefined };
      live.add({ ...subject, event: { case: "head", value: { statement, signed } } });
      notifier.notify();
    },
    close: () => notifier.close(),
  };
}

const progress = { case: "progress", value: {} } as const;

/** Returns the position up to which a stream is complete. One that starts with a future block is complete at the head. */
function sentUpTo(position: CursorPosition, latest: bigint): CursorPosition {
  return position.block > latest ? { block: latest, position: positionOfBlock } : position;
}

/**
 * Returns a message that is not an event of a block, with the current cursor of the stream. Its block is the last one
 * whose events are all sent.
 */
function toMessage({ block, position }: CursorPosition, event: NonNullable<EventMessage["event"]>): EventMessage {
  const blockNumber = position === positionOfBlock ? block : block - 1n;
  return { cursor: cursorText(block, position), blockNumber, event };
}

/** Live event. It has no cursor of its own: its message carries the position of each subscriber. */
interface LiveEvent extends EventSubject {
  /** Sequence number, 1 higher than that of the previous event. */
  readonly sequence: number;
  readonly event: NonNullable<EventMessage["event"]>;
}

/**
 * Capacity of the buffer, for a burst of rejections. A subscriber that falls further behind misses the oldest events.
 */
const maxBuffered = 1_024;

/** Creates a ring buffer of the latest live events. */
function createLiveEvents() {
  const buffered: LiveEvent[] = [];
  let latest = 0;
  return {
    /** Returns the sequence number of the latest event; 0 if there is none. */
    latest: () => latest,
    add(event: Omit<LiveEvent, "sequence">): void {
      latest++;
      buffered[latest % maxBuffered] = { ...event, sequence: latest };
    },
    /** Returns the oldest buffered event after a sequence number; undefined if there is none. */
    after: (sequence: number): LiveEvent | undefined =>
      sequence >= latest ? undefined : buffered[Math.max(sequence + 1, latest - maxBuffered + 1) % maxBuffered],
  };
}

/** Creates a notifier that wakes subscribers when there may be new events. */
function createNotifier() {
  let isClosed = false;
  const waits = new Set<() => void>();

  /** Wakes all subscribers that wait. Each of them then has work to do, so this yields to the event loop. */
  async function notify(): Promise<void> {
    for await (const wake of eachYielding([...waits], requestWork)) {
      wake();
    }
  }

  return {
    isClosed: () => isClosed,
    notify: () => void notify(),
    /** Resolves when there may be new events, when the signal is aborted, or when the notifier is closed. */
    async wait(signal: AbortSignal): Promise<void> {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          // An AbortSignal retains every listener that is not removed.
          signal.removeEventListener("abort", wake);
          waits.delete(wake);
          resolve();
        };
        signal.addEventListener("abort", wake);
        waits.add(wake);
        if (isClosed || signal.aborted) {
          wake();
        }
      });
    },
    /** Wakes all subscribers. Later waits resolve immediately. */
    close(): void {
      isClosed = true;
      void notify();
    },
  };
}
