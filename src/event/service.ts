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

/** Event service, and its event sources. */
export interface Events {
  readonly service: Implementation<typeof EventService>;
  /** Reports that there may be a new block. */
  wake(): void;
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
  const wakes = createNotifier();
  const live = createLiveEvents();

  function needHead() {
    const head = deps.head();
    if (head === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no blocks yet; use another node, or try again later.");
    }
    return head;
  }

  async function* watch(
    ...[request, { caller, signal }]: Parameters<Events["service"]["watch"]>
  ): AsyncGenerator<EventMessage, void> {
    const watching = readWatchRequest(request);
    const { number, lowestBlock } = needHead();
    let at = watching.after ?? { block: number, position: positionOfBlock };
    checkRetained(blockAfter(at), lowestBlock);
    let received = live.latest;
    let last: { readonly cursor?: string; readonly sentAtMs: number } = { sentAtMs: -Infinity };
    let hasArrived = false;
    const sleeper = wakes.enter(signal);
    try {
      while (!signal.aborted && !wakes.isOver) {
        const happened = live.after(received);
        const isBehind = blockAfter(at) <= needHead().number;
        let message: EventMessage | undefined;
        if (happened !== undefined) {
          received = happened.sequence;
          message = watching.matches(happened, true) ? toMessage(at, happened.event) : undefined;
        } else if (isBehind) {
          // References no data of the block while the subscriber reads, which may take arbitrarily long.
          ({ at, message } = await log.next(at, watching, caller.identity));
          message ??= performance.now() - last.sentAtMs >= progressEveryMs ? toMessage(at, progress) : undefined;
        } else if (hasArrived) {
          await sleeper.sleep();
        } else {
          // Notifies the subscriber that it has caught up. The cursor is the position to resume from if the stream ends
          // before the next event.
          hasArrived = true;
          const here = toMessage(at, progress);
          message = here.cursor === last.cursor ? undefined : here;
        }
        if (message !== undefined) {
          yield message;
          last = { cursor: message.cursor!, sentAtMs: performance.now() };
        }
      }
    } finally {
      sleeper.leave();
    }
  }

  return {
    service: { watch },
    wake: () => wakes.wake(),
    rejected({ hash, reason }) {
      const value = { hash, outcome: TransactionOutcome.REJECTED, reason };
      const subject = { kind: EventKind.TRANSACTION, transaction: hash, address: undefined };
      live.add({ ...subject, event: { case: "transaction", value } });
      wakes.wake();
    },
    headSigned(statement, signed) {
      const subject = { kind: EventKind.HEAD, transaction: undefined, address: undefined };
      live.add({ ...subject, event: { case: "head", value: { statement, signed } } });
      wakes.wake();
    },
    close: () => wakes.close(),
  };
}

const progress = { case: "progress", value: {} } as const;

/** Returns a message that is not an event of a block, with the current cursor of the stream. */
function toMessage(at: CursorPosition, event: NonNullable<EventMessage["event"]>): EventMessage {
  const blockNumber = at.position === positionOfBlock ? at.block : at.block - 1n;
  return { cursor: cursorText(at.block, at.position), blockNumber, event };
}
