/**
 * Start-time fair queueing of pending transactions. The sources of transactions share the capacity of a block, and the
 * senders of a source share the capacity of that source. Each source and each sender is a flow that advances in virtual
 * time, in units of block slots. A transaction that costs n slots therefore waits for at most n slots of each other
 * source, however large or old the backlog of that source is.
 *
 * A flow that was idle starts at the current virtual time, so it gains no advantage. A large transaction cannot starve,
 * because virtual time eventually reaches it.
 */
import { createPriorityQueue, type PriorityQueue } from "./priority-queue.js";

/** Virtual times on the arrival of a transaction, before which it cannot start. */
export interface StartTag {
  /**
   * Source whose flow includes the sender. A sender with pending transactions stays with its first source, so that all
   * its transactions form one queue.
   */
  readonly sourceKey: string | undefined;
  /** Virtual time among all sources. */
  readonly sourceTime: number;
  /** Virtual time among the senders of the source. */
  readonly senderTime: number;
}

/** Scheduling data of a pending transaction. */
export interface QueuedTransaction {
  readonly sender: string;
  readonly nonce: bigint;
  readonly sizeBytes: number;
  readonly startTag: StartTag;
}

/** Virtual times up to which flows were served. */
export interface ServedTimes {
  /** Returns the time of a source, or of a sender of that source; 0 for an unknown flow. */
  of(source: string | undefined, sender?: string): number;
}

/** Limits on one selection. The first transaction is selected even if it exceeds `bytes`. */
export interface SelectionLimits {
  readonly count: number;
  readonly bytes: number;
}

/** Bytes that cost as much as one slot: a block of 3 MiB holds 1,000 transactions. */
const slotBytes = 3 * 1024;

/** Returns the cost of a transaction in block slots, at least 1. */
export function slotsOf({ sizeBytes }: Pick<QueuedTransaction, "sizeBytes">): number {
  return Math.max(1, Math.ceil(sizeBytes / slotBytes));
}

/** Pending transactions of one sender, sorted by nonce. */
interface SenderQueue<E> {
  /** Virtual time among the senders of the source. */
  served: number;
  readonly entries: E[];
  /** Index of the next transaction to select. */
  next: number;
}

/** Senders of one source that have pending transactions. */
interface SourceQueue<E> {
  /** Virtual time among all sources. */
  served: number;
  readonly senders: PriorityQueue<SenderQueue<E>>;
}

/** Next transaction of a source, as an entry in the queue of sources. */
interface QueuedSource<E> {
  readonly source: SourceQueue<E>;
  readonly sender: SenderQueue<E>;
  /** Virtual time among the senders of the source once the transaction is served. */
  readonly senderTime: number;
}

/**
 * Selects the transactions to process next, in fair order; those of one sender stay in nonce order.
 *
 * @param pending transactions in order of arrival, which breaks ties.
 * @param served virtual times at the start of the selection.
 */
export function selectFair<E extends QueuedTransaction>(
  pending: Iterable<E>,
  served: ServedTimes,
  limits: SelectionLimits,
): E[] {
  const queue = createPriorityQueue<QueuedSource<E>>();
  for (const source of groupBySource(pending, served)) {
    pushSource(queue, source);
  }
  const selected: E[] = [];
  let bytes = 0;
  for (let top = queue.pop(); top !== undefined; top = queue.pop()) {
    const { source, sender, senderTime } = top.item;
    const entry = sender.entries[sender.next]!;
    bytes += entry.sizeBytes;
    if (selected.length >= limits.count || (selected.length > 0 && bytes > limits.bytes)) {
      break;
    }
    selected.push(entry);
    sender.next++;
    sender.served = senderTime;
    source.served = top.key;
    pushSender(source.senders, sender);
    pushSource(queue, source);
  }
  return selected;
}

function groupBySource<E extends QueuedTransaction>(pending: Iterable<E>, served: ServedTimes): SourceQueue<E>[] {
  const sources = new Map<string | undefined, Map<string, SenderQueue<E>>>();
  for (const entry of pending) {
    const { startTag, sender } = entry;
    const senders = getOrCreate(sources, startTag.sourceKey, () => new Map<string, SenderQueue<E>>());
    const createQueue = (): SenderQueue<E> => ({ served: served.of(startTag.sourceKey, sender), entries: [], next: 0 });
    getOrCreate(senders, sender, createQueue).entries.push(entry);
  }
  return [...sources].map(([sourceKey, bySender]) => {
    const senders = createPriorityQueue<SenderQueue<E>>();
    for (const queue of bySender.values()) {
      queue.entries.sort(byNonce);
      pushSender(senders, queue);
    }
    return { served: served.of(sourceKey), senders };
  });
}

/** Returns the value of a key; adds a new value if there is none. */
export function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

/** Compares transactions of one sender by nonce. */
export function byNonce(a: Pick<QueuedTransaction, "nonce">, b: Pick<QueuedTransaction, "nonce">): number {
  return a.nonce < b.nonce ? -1 : Number(a.nonce > b.nonce);
}

/** Queues a sender at its source, keyed by the virtual time after its next transaction. */
function pushSender<E extends QueuedTransaction>(senders: PriorityQueue<SenderQueue<E>>, sender: SenderQueue<E>): void {
  const next = sender.entries[sender.next];
  if (next !== undefined) {
    senders.push(Math.max(sender.served, next.startTag.senderTime) + slotsOf(next), sender);
  }
}

/** Queues a source, keyed by the virtual time after the next transaction of its first sender. */
function pushSource<E extends QueuedTransaction>(queue: PriorityQueue<QueuedSource<E>>, source: SourceQueue<E>): void {
  const first = source.senders.pop();
  if (first !== undefined) {
    const { key: senderTime, item: sender } = first;
    const next = sender.entries[sender.next]!;
    queue.push(Math.max(source.served, next.startTag.sourceTime) + slotsOf(next), { source, sender, senderTime });
  }
}

/** Tracker of the virtual time of all flows. */
export interface VirtualTime extends ServedTimes {
  /** Adds a transaction and returns its start tag. */
  add(source: string | undefined, sender: string): StartTag;
  /** Removes a transaction. `isServed` is true if it entered a block or was rejected, false if it expired. */
  remove(removed: QueuedTransaction, isServed: boolean): void;
}

interface Flow {
  /** Number of pending transactions. */
  pending: number;
  /** Virtual time up to which the flow was served. */
  served: number;
}

interface SourceFlow extends Flow {
  /** Virtual time among the senders of the source. */
  time: number;
  readonly senders: Map<string, Flow>;
}

/**
 * Creates a tracker without flows. A flow is deleted once it has no pending transactions, because the virtual time is
 * then at least as late as the time up to which the flow was served.
 */
export function createVirtualTime(): VirtualTime {
  const sources = new Map<string | undefined, SourceFlow>();
  const sourceKeys = new Map<string, string | undefined>();
  let time = 0;

  return {
    of(source, sender) {
      const flow = sources.get(source);
      return (sender === undefined ? flow : flow?.senders.get(sender))?.served ?? 0;
    },
    add(source, sender) {
      const sourceKey = sourceKeys.has(sender) ? sourceKeys.get(sender) : source;
      sourceKeys.set(sender, sourceKey);
      const createFlow = (): SourceFlow => ({ pending: 0, served: 0, time: 0, senders: new Map<string, Flow>() });
      const flow = getOrCreate(sources, sourceKey, createFlow);
      flow.pending++;
      getOrCreate(flow.senders, sender, () => ({ pending: 0, served: 0 })).pending++;
      return { sourceKey, sourceTime: time, senderTime: flow.time };
    },
    remove(removed, isServed) {
      const { startTag } = removed;
      const flow = sources.get(startTag.sourceKey)!;
      const sender = flow.senders.get(removed.sender)!;
      if (isServed) {
        const slots = slotsOf(removed);
        sender.served = Math.max(sender.served, startTag.senderTime) + slots;
        flow.time = Math.max(flow.time, sender.served);
        flow.served = Math.max(flow.served, startTag.sourceTime) + slots;
        time = Math.max(time, flow.served);
      } else {
        // An expired transaction forfeits its wait. Otherwise, those queued behind it would be selected in a burst.
        sender.served = Math.max(sender.served, flow.time);
        flow.served = Math.max(flow.served, time);
      }
      if (--sender.pending === 0) {
        flow.senders.delete(removed.sender);
        sourceKeys.delete(removed.sender);
      }
      if (--flow.pending === 0) {
        sources.delete(startTag.sourceKey);
      }
    },
  };
}

/** Yields the entries in order, in groups that fit the limits. An entry above the limits forms its own group. */
export function* inPortions<E extends { readonly sizeBytes: number }>(
  entries: readonly E[],
  limits: SelectionLimits,
): Generator<E[]> {
  let portion: E[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (portion.length > 0 && (portion.length >= limits.count || bytes + entry.sizeBytes > limits.bytes)) {
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
