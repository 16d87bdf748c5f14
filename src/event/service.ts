/** The event service: a watcher is a place in the log of blocks, from which he is told what comes after it. */
import { EventKind, type EventService, TransactionOutcome } from "../../gen/gatehouse/event/v1/event_pb.js";
import type { HeadStatement, SignedHead } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import { cursorText, type EventMessage, placeOfBlock } from "./block-events.js";
import { blockAfter, type BlockLog } from "./block-log.js";
import { createLiveEvents } from "./live-events.js";
import { createNotifier } from "./notifier.js";
import { type Place, readWatchRequest } from "./watch-request.js";

/** What it is made of. */
export interface EventServiceDeps {
  /** The newest block; undefined while there is none. */
  readonly head: () => { readonly number: bigint; readonly lowestBlock: bigint } | undefined;
  readonly log: BlockLog;
  /** Throws Failure PRUNED for a block below the lowest one whose transactions are kept. */
  readonly checkKept: (number: bigint, lowest: bigint) => void;
  /** How long nothing is said to who hears of nothing that he asks for, while the stream goes on. */
  readonly progressEveryMs?: number;
}

/** The service, and what it is told. */
export interface Events {
  readonly service: Implementation<typeof EventService>;
  /** There may be a new block. */
  wake(): void;
  /** A transaction is in no block, and will be in none. */
  rejected(transaction: { readonly hash: string; readonly reason: string }): void;
  /** An authority has signed which block is its newest. */
  headSigned(statement: HeadStatement, signed: SignedHead): void;
  /** Ends all streams. */
  close(): void;
}

const defaultProgressEveryMs = 10_000;

/** Builds it; nobody watches yet. */
export function createEvents(deps: EventServiceDeps): Events {
  const { log, checkKept, progressEveryMs = defaultProgressEveryMs } = deps;
  const wakes = createNotifier();
  const live = createLiveEvents();

  function needHead() {
    const head = deps.head();
    if (head === undefined) {
      throw new RpcError("STATE_NOT_READY", "The node has no blocks yet; ask another node, or try again later.");
    }
    return head;
  }

  async function* watch(
    ...[request, { caller, signal }]: Parameters<Events["service"]["watch"]>
  ): AsyncGenerator<EventMessage, void> {
    const watching = readWatchRequest(request);
    const { number, lowestBlock } = needHead();
    let at = watching.after ?? { block: number, place: placeOfBlock };
    checkKept(blockAfter(at), lowestBlock);
    let heard = live.newest;
    let last: { readonly cursor?: string; readonly saidMs: number } = { saidMs: -Infinity };
    let hasArrived = false;
    const sleeper = wakes.enter(signal);
    try {
      while (!signal.aborted && !wakes.isOver) {
        const happened = live.after(heard);
        const isBehind = blockAfter(at) <= needHead().number;
        let message: EventMessage | undefined;
        if (happened !== undefined) {
          heard = happened.sequence;
          message = watching.wants(happened, true) ? said(at, happened.event) : undefined;
        } else if (isBehind) {
          // Nothing of the block is held while its reader takes his time: he may take any.
          ({ at, message } = await log.next(at, watching, caller.identity));
          message ??= performance.now() - last.saidMs >= progressEveryMs ? said(at, progress) : undefined;
        } else if (hasArrived) {
          await sleeper.sleep();
        } else {
          // From here on he hears of everything at once; where he goes on should he lose the stream before that.
          hasArrived = true;
          const here = said(at, progress);
          message = here.cursor === last.cursor ? undefined : here;
        }
        if (message !== undefined) {
          yield message;
          last = { cursor: message.cursor!, saidMs: performance.now() };
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

/** What is said at a place of the stream, and is no event of a block. */
function said(at: Place, event: NonNullable<EventMessage["event"]>): EventMessage {
  const blockNumber = at.place === placeOfBlock ? at.block : at.block - 1n;
  return { cursor: cursorText(at.block, at.place), blockNumber, event };
}
