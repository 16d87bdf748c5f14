/**
 * Start-time fair queueing of pending transactions. The sources of transactions share the capacity of a block, and the
 * senders of a source share the capacity of that source. Each source and each sender is a flow that advances in virtual
 * time, in units of block slots. A transaction therefore waits for no more of another source's transactions than its
 * own cost, however large or old the backlog of that source is.
 *
 * A flow that was idle starts at the current virtual time and gains no credit. A large transaction cannot starve,
 * because virtual time eventually reaches it.
 */
import { createPriorityQueue, type PriorityQueue } from "./priority-queue.js";

/**
 * Flow of a transaction, and the virtual times on its arrival: those of all sources and of the senders within its
 * source.
 */
export interface StartTag {
  /**
   * Source of the sender's flow. A sender with pending transactions stays with its first source, so that all its
   * transactions form one queue.
   */
  readonly lane: string | undefined;
  readonly origin: number;
  readonly sender: number;
}

/** Scheduling data of a pending transaction. */
export interface Waiting {
  readonly sender: string;
  readonly nonce: bigint;
  readonly sizeBytes: number;
  readonly stamp: StartTag;
}

/** Virtual time up to which a source, or a sender of that source, was served; 0 for unknown flows. */
export interface Dequeued {
  of(origin: string | undefined, sender?: string): number;
}

/** Limits on one selection. The first transaction is selected even if it exceeds `bytes`. */
export interface Bounds {
  readonly count: number;
  readonly bytes: number;
}

/** Bytes that cost as much as one slot: a block of 3 MiB holds 1,000 transactions. */
const bytesOfPlace = 3 * 1024;

/** Returns the cost of a transaction in block slots, at least 1. */
export function placesOf({ sizeBytes }: Pick<Waiting, "sizeBytes">): number {
  return Math.max(1, Math.ceil(sizeBytes / bytesOfPlace));
}

/** Pending transactions of one sender, sorted by nonce. */
interface SenderTurns<E> {
  served: number;
  readonly entries: E[];
  next: number;
}

interface OriginTurns<E> {
  served: number;
  readonly senders: PriorityQueue<SenderTurns<E>>;
}

/** Next transaction of a source, as an entry in the queue of sources. */
interface Turn<E> {
  readonly origin: OriginTurns<E>;
  readonly sender: SenderTurns<E>;
  /** Virtual time among the senders of the source once the transaction is served. */
  readonly senderLine: number;
}

/**
 * Selects the transactions to process next, in fair order; those of one sender stay in nonce order.
 *
 * @param waiting pending transactions in order of arrival, which breaks ties.
 */
export function selectFair<E extends Waiting>(waiting: Iterable<E>, served: Dequeued, bounds: Bounds): E[] {
  const turns = createPriorityQueue<Turn<E>>();
  for (const origin of groupByOrigin(waiting, served)) {
    pushTurn(turns, origin);
  }
  const selected: E[] = [];
  let bytes = 0;
  for (let turn = turns.pop(); turn !== undefined; turn = turns.pop()) {
    const { origin, sender, senderLine } = turn.item;
    const entry = sender.entries[sender.next]!;
    bytes += entry.sizeBytes;
    if (selected.length >= bounds.count || (selected.length > 0 && bytes > bounds.bytes)) {
      break;
    }
    selected.push(entry);
    sender.next++;
    sender.served = senderLine;
    origin.served = turn.key;
    pushSender(origin.senders, sender);
    pushTurn(turns, origin);
  }
  return selected;
}

function groupByOrigin<E extends Waiting>(waiting: Iterable<E>, served: Dequeued): Iterable<OriginTurns<E>> {
  const origins = new Map<string | undefined, Map<string, SenderTurns<E>>>();
  for (const entry of waiting) {
    const { stamp, sender } = entry;
    const senders = getOrMake(origins, stamp.lane, () => new Map<string, SenderTurns<E>>());
    const makeTurns = (): SenderTurns<E> => ({ served: served.of(stamp.lane, sender), entries: [], next: 0 });
    getOrMake(senders, sender, makeTurns).entries.push(entry);
  }
  return [...origins].map(([lane, bySender]) => {
    const senders = createPriorityQueue<SenderTurns<E>>();
    for (const turns of bySender.values()) {
      turns.entries.sort(byNonce);
      pushSender(senders, turns);
    }
    return { served: served.of(lane), senders };
  });
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/** Compares transactions of one sender by nonce. */
export function byNonce(a: Pick<Waiting, "nonce">, b: Pick<Waiting, "nonce">): number {
  return a.nonce < b.nonce ? -1 : Number(a.nonce > b.nonce);
}

/** Queues a sender at its source, keyed by the virtual time after its next transaction. */
function pushSender<E extends Waiting>(senders: PriorityQueue<SenderTurns<E>>, sender: SenderTurns<E>): void {
  const next = sender.entries[sender.next];
  if (next !== undefined) {
    senders.push(Math.max(sender.served, next.stamp.sender) + placesOf(next), sender);
  }
}

/** Queues a source, keyed by the virtual time after the next transaction of its first sender. */
function pushTurn<E extends Waiting>(turns: PriorityQueue<Turn<E>>, origin: OriginTurns<E>): void {
  const first = origin.senders.pop();
  if (first !== undefined) {
    const { key: senderLine, item: sender } = first;
    const next = sender.entries[sender.next]!;
    turns.push(Math.max(origin.served, next.stamp.origin) + placesOf(next), { origin, sender, senderLine });
  }
}

/** Tracker of the virtual time of all flows. */
export interface VirtualTime extends Dequeued {
  /** Records the arrival of a transaction and returns its start tag. */
  arrive(origin: string | undefined, sender: string): StartTag;
  /**
   * Records the removal of a transaction. `isServed` is true if it entered a block or was rejected, false if it
   * expired.
   */
  leave(left: Waiting, isServed: boolean): void;
}

interface Flow {
  waiting: number;
  served: number;
}

interface OriginFlow extends Flow {
  /** Virtual time among the senders of the source. */
  line: number;
  readonly senders: Map<string, Flow>;
}

/**
 * Creates a tracker without flows. A flow is deleted once nothing of it is pending: virtual time has passed all that it
 * was served.
 */
export function createVirtualTime(): VirtualTime {
  const origins = new Map<string | undefined, OriginFlow>();
  const lanes = new Map<string, string | undefined>();
  let line = 0;

  return {
    of(origin, sender) {
      const flow = origins.get(origin);
      return (sender === undefined ? flow : flow?.senders.get(sender))?.served ?? 0;
    },
    arrive(origin, sender) {
      const lane = lanes.has(sender) ? lanes.get(sender) : origin;
      lanes.set(sender, lane);
      const makeOrigin = (): OriginFlow => ({ waiting: 0, served: 0, line: 0, senders: new Map<string, Flow>() });
      const flow = getOrMake(origins, lane, makeOrigin);
      flow.waiting++;
      getOrMake(flow.senders, sender, () => ({ waiting: 0, served: 0 })).waiting++;
      return { lane, origin: line, sender: flow.line };
    },
    leave(left, isServed) {
      const { stamp } = left;
      const flow = origins.get(stamp.lane)!;
      const sender = flow.senders.get(left.sender)!;
      if (isServed) {
        const places = placesOf(left);
        sender.served = Math.max(sender.served, stamp.sender) + places;
        flow.line = Math.max(flow.line, sender.served);
        flow.served = Math.max(flow.served, stamp.origin) + places;
        line = Math.max(line, flow.served);
      } else {
        // An expired transaction forfeits its wait. Otherwise, those queued behind it would be selected in a burst.
        sender.served = Math.max(sender.served, flow.line);
        flow.served = Math.max(flow.served, line);
      }
      if (--sender.waiting === 0) {
        flow.senders.delete(left.sender);
        lanes.delete(left.sender);
      }
      if (--flow.waiting === 0) {
        origins.delete(stamp.lane);
      }
    },
  };
}

/** Yields the entries in order, in groups that fit the limits. An entry above the limits forms its own group. */
export function* inPortions<E extends { readonly sizeBytes: number }>(
  entries: readonly E[],
  bounds: Bounds,
): Generator<E[]> {
  let portion: E[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (portion.length > 0 && (portion.length >= bounds.count || bytes + entry.sizeBytes > bounds.bytes)) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(entry);
    bytes += entry.sizeBytes;
  }
  if (portion.length > 0) {
    yield portion;
  }
}
