/** Event service. A subscriber is a cursor into the block log; the stream sends the events after this cursor. */
import { EventKind, type EventService, TransactionOutcome } from "../../gen/gatehouse/event/v1/event_pb.js";
import type { HeadStatement, SignedHead } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { cursorText, type EventMessage, positionOfBlock } from "./block-events.js";
import { blockAfter, type BlockLog } from "./block-log.js";
import { createLiveEvents } from "./live-events.js";
import { createNotifier } from "./notifier.js";
import { type CursorPosition, readWatchRequest } from "./watch-request.js";

export interface EventServiceDeps {
  /** Returns the latest block; undefined if there is none. */
  readonly head: () => { readonly number: bigint; readonly lowestBlock: bigint } | undefined;
  readonly log: BlockLog;
  /** Throws RpcError PRUNED for a block whose transactions are not retained. */
  readonly checkRetained: (number: bigint, lowest: bigint) => void;
  /** Interval between progress messages while the stream scans blocks without matching events, in ms. Default: 10 s. */
  readonly progressEveryMs?: number;
}

/** Event service, and the functions that report events to it. */
export interface Events {
  readonly service: Implementation<typeof EventService>;
  /** Reports that there may be new blocks. */
  notify(): void;
  /** Reports a transaction that can never be included in a block. */
  rejected(transaction: { readonly hash: string; readonly reason: string }): void;
  /** Reports a signed head of an authority. */
  headSigned(statement: HeadStatement, signed: SignedHead): void;
  /** Ends all streams. */
  close(): void;
}

const defaultProgressEveryMs = 10_000;

/** Creates the event service without subscribers. */
export function createEvents(deps: EventServiceDeps): Events {
  const { log, checkRetained, progressEveryMs = defaultProgressEveryMs } = deps;
  const notifier = createNotifier();
  const live = createLiveEvents();

  /** Returns the latest block. Throws RpcError STATE_NOT_READY if there is none. */
  function requireHead() {
    const head = deps.head();
    if (head === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no blocks yet; use another node, or try again later.");
    }
    return head;
  }

  async function* watch(
    ...[request, { caller, signal }]: Parameters<Events["service"]["watch"]>
  ): AsyncGenerator<EventMessage, void> {
    const decoded = readWatchRequest(request);
    const { number, lowestBlock } = requireHead();
    let position = decoded.after ?? { block: number, position: positionOfBlock };
    checkRetained(blockAfter(position), lowestBlock);
    let liveSequence = live.latest;
    let last: { readonly cursor?: string; readonly sentAtMs: number } = { sentAtMs: -Infinity };
    let hasCaughtUp = false;
    const subscription = notifier.subscribe(signal);
    try {
      while (!signal.aborted && !notifier.isClosed) {
        const liveEvent = live.after(liveSequence);
        const isBehind = blockAfter(position) <= requireHead().number;
        let message: EventMessage | undefined;
        if (liveEvent !== undefined) {
          liveSequence = liveEvent.sequence;
          message = decoded.matches(liveEvent, true) ? toMessage(position, liveEvent.event) : undefined;
        } else if (isBehind) {
          // The stream retains only the position, not the block: the subscriber may read arbitrarily slowly.
          ({ position, message } = await log.next(position, decoded, caller.identity));
          message ??= performance.now() - last.sentAtMs >= progressEveryMs ? toMessage(position, progress) : undefined;
        } else if (hasCaughtUp) {
          await subscription.wait();
        } else {
          // Reports to the subscriber that it has caught up. The cursor is the position to resume from if the stream
          // ends before the next event.
          hasCaughtUp = true;
          const report = toMessage(position, progress);
          message = report.cursor === last.cursor ? undefined : report;
        }
        if (message !== undefined) {
          yield message;
          last = { cursor: message.cursor!, sentAtMs: performance.now() };
        }
      }
    } finally {
      subscription.unsubscribe();
    }
  }

  return {
    service: { watch },
    notify: () => notifier.notify(),
    rejected({ hash, reason }) {
      const value = { hash, outcome: TransactionOutcome.REJECTED, reason };
      const subject = { kind: EventKind.TRANSACTION, transaction: hash, address: undefined };
      live.add({ ...subject, event: { case: "transaction", value } });
      notifier.notify();
    },
    headSigned(statement, signed) {
      const subject = { kind: EventKind.HEAD, transaction: undefined, address: undefined };
      live.add({ ...subject, event: { case: "head", value: { statement, signed } } });
      notifier.notify();
    },
    close: () => notifier.close(),
  };
}

const progress = { case: "progress", value: {} } as const;

/**
 * Returns a message that is not an event of a block, with the current cursor of the stream. Its block is the last one
 * whose events are all sent.
 */
function toMessage({ block, position }: CursorPosition, event: NonNullable<EventMessage["event"]>): EventMessage {
  const blockNumber = position === positionOfBlock ? block : block - 1n;
  return { cursor: cursorText(block, position), blockNumber, event };
}
