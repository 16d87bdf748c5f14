/**
 * Whose turn it is: origins share what a block holds, and the senders of an origin share what it has. Each is served up
 * to the same line, in units of a block, before anybody is served beyond it; so a transaction waits for no more of another
 * origin's than it weighs itself, however much of that there is, and however long it has been waiting.
 *
 * The line is the virtual time of fair queueing. Who was idle begins at where the line is and gains nothing by that, and
 * who waits with something large is reached by the line in the end.
 */
import { createPriorityQueue, type PriorityQueue } from "./priority-queue.js";

/** Whose turns are a transaction's, and where the line was when it came: that of all origins, and that of its senders. */
export interface StartTag {
  /** The origin that its sender had already, if it had one: all that a sender has waiting is one queue. */
  readonly lane: string | undefined;
  readonly origin: number;
  readonly sender: number;
}

/** A transaction that waits, as far as its turn depends on it. */
export interface Waiting {
  readonly sender: string;
  readonly nonce: bigint;
  readonly sizeBytes: number;
  readonly stamp: StartTag;
}

/** Up to where an origin, or a sender of it, was served; 0 where nothing is known. */
export interface Dequeued {
  of(origin: string | undefined, sender?: string): number;
}

/** Most that is selected. The first one is, whatever it weighs. */
export interface Bounds {
  readonly count: number;
  readonly bytes: number;
}

/** A block of 3 MiB holds 1,000 transactions: so many bytes are worth a place. */
const bytesOfPlace = 3 * 1024;

/** What a transaction weighs, in places of a block. */
export function placesOf({ sizeBytes }: Pick<Waiting, "sizeBytes">): number {
  return Math.max(1, Math.ceil(sizeBytes / bytesOfPlace));
}

/** What a sender has waiting, by nonce. */
interface SenderTurns<E> {
  served: number;
  readonly entries: E[];
  next: number;
}

interface OriginTurns<E> {
  served: number;
  readonly senders: PriorityQueue<SenderTurns<E>>;
}

/** The next turn of an origin. */
interface Turn<E> {
  readonly origin: OriginTurns<E>;
  readonly sender: SenderTurns<E>;
  /** Where the line of its senders is then. */
  readonly senderLine: number;
}

/**
 * The transactions that come next, in their order; those of one sender by their nonces.
 *
 * @param waiting in the order in which they came, which decides where nothing else does.
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

/** The order of one sender's transactions. */
export function byNonce(a: Pick<Waiting, "nonce">, b: Pick<Waiting, "nonce">): number {
  return a.nonce < b.nonce ? -1 : Number(a.nonce > b.nonce);
}

/** Puts a sender in line at its origin, by where the line is once its next one is served. */
function pushSender<E extends Waiting>(senders: PriorityQueue<SenderTurns<E>>, sender: SenderTurns<E>): void {
  const next = sender.entries[sender.next];
  if (next !== undefined) {
    senders.push(Math.max(sender.served, next.stamp.sender) + placesOf(next), sender);
  }
}

/** Puts an origin in line with the sender whose turn it is there. */
function pushTurn<E extends Waiting>(turns: PriorityQueue<Turn<E>>, origin: OriginTurns<E>): void {
  const first = origin.senders.pop();
  if (first !== undefined) {
    const { key: senderLine, item: sender } = first;
    const next = sender.entries[sender.next]!;
    turns.push(Math.max(origin.served, next.stamp.origin) + placesOf(next), { origin, sender, senderLine });
  }
}

/** How far all were served. */
export interface VirtualTime extends Dequeued {
  /** A transaction came. */
  arrive(origin: string | undefined, sender: string): StartTag;
  /** One left; it was served if a block was made of it, or it had its chance. */
  leave(left: Waiting, isServed: boolean): void;
}

interface Flow {
  waiting: number;
  served: number;
}

interface OriginFlow extends Flow {
  /** The line of its senders. */
  line: number;
  readonly senders: Map<string, Flow>;
}

/** Builds the line. Who has nothing waiting is forgotten: the line is past everything that was served. */
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
        // What it waited for is forfeited, else those behind it would come in a burst.
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

/** Some of these together, in their order: as many as fit the bounds, or one. */
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
