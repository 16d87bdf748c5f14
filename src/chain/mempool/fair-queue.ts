/**
 * Weighted fair queueing of pending transactions, with equal weights. The sources of transactions share the capacity of
 * a block, and the senders of a source share the capacity of that source. Each source and each sender is a flow. A
 * transaction is due once its flow was served the transaction's size, in block slots, from the flow's start on; those
 * due earliest are selected first.
 *
 * Virtual time is the number of slots that the flows were served on average. A flow that was idle starts there. A
 * transaction of n slots from a new source therefore waits for at most n slots of each other source, and for a large
 * one that was due, however large or old the backlogs are. A large transaction cannot starve, because virtual time
 * eventually reaches it.
 *
 * A flow that was served more than the average keeps its lead while idle, so going idle gains nothing. A flow that
 * could not be served for a while gains one transaction at most: the following ones start at the virtual time.
 */

/** Transaction as far as the queue reads it. */
export interface QueuedTransaction {
  readonly source: string | undefined;
  readonly sender: string;
  readonly nonce: bigint;
  readonly sizeBytes: number;
}

/** Limits on one selection. The first transaction is selected even if it exceeds `bytes`. */
export interface SelectionLimits {
  readonly count: number;
  readonly bytes: number;
}

interface Flow {
  /** Virtual time up to which the flow was served. */
  served: number;
  /** Slots of pending transactions; 0 if the flow is idle. */
  pending: number;
}

/** Flows that share a capacity. Idle ones are members until the virtual time passes them. */
interface FlowGroup<F extends Flow> {
  readonly flows: Map<string | undefined, F>;
  /** Slots of pending transactions. */
  pending: number;
  /** Virtual time; never decreases. */
  time: number;
  /** True if transactions were removed since `time` was computed. */
  isStale: boolean;
}

interface SourceFlow<E> extends Flow, FlowGroup<SenderFlow<E>> {}

interface SenderFlow<E> extends Flow {
  readonly source: SourceFlow<E>;
  /** Pending transactions by nonce. */
  readonly entries: E[];
}

/** Bytes that cost as much as one slot: a block of 3 MiB holds 1,000 transactions. */
const slotBytes = 3 * 1024;

/** Returns the cost of a transaction in block slots, at least 1. */
export function slotsOf({ sizeBytes }: Pick<QueuedTransaction, "sizeBytes">): number {
  return Math.max(1, Math.ceil(sizeBytes / slotBytes));
}

export type FairQueue<E extends QueuedTransaction> = ReturnType<typeof createFairQueue<E>>;

/** Creates an empty queue. */
export function createFairQueue<E extends QueuedTransaction>() {
  const all = createGroup<SourceFlow<E>>();
  /** Senders with pending transactions. */
  const senders = new Map<string, SenderFlow<E>>();

  /** Returns the flow of a sender. It belongs to this source if the sender has no pending transactions. */
  function flowOf({ source: key, sender }: E): SenderFlow<E> {
    const existing = senders.get(sender);
    if (existing !== undefined) {
      return existing;
    }
    const source = enter(all, key, () => ({ served: 0, ...createGroup<SenderFlow<E>>() }));
    const flow = enter(source, sender, () => ({ source, served: 0, pending: 0, entries: [] }));
    senders.set(sender, flow);
    return flow;
  }

  return {
    /**
     * Adds a transaction. A sender with pending transactions stays with its first source, so that all its transactions
     * form one flow.
     */
    add(entry: E): void {
      const sender = flowOf(entry);
      const { source, entries } = sender;
      entries.splice(entries.findLastIndex(({ nonce }) => nonce <= entry.nonce) + 1, 0, entry);
      [all, source, sender].forEach((one) => (one.pending += slotsOf(entry)));
    },

    /** Removes a transaction. `isServed` is true if it entered a block or was rejected, false if it expired. */
    remove(entry: E, isServed: boolean): void {
      const sender = senders.get(entry.sender)!;
      const { source, entries } = sender;
      const slots = slotsOf(entry);
      serve(all, source, isServed ? slots : 0);
      serve(source, sender, isServed ? slots : 0);
      entries.splice(entries.indexOf(entry), 1);
      [all, source, sender].forEach((one) => (one.pending -= slots));
      if (entries.length === 0) {
        senders.delete(entry.sender);
      }
    },

    /** Returns the number of sources and senders in memory, including idle ones. */
    flowCount(): number {
      timeOf(all);
      return [...all.flows.values()].reduce((sum, { flows }) => sum + flows.size, all.flows.size);
    },

    /** Returns the pending transactions of a sender by nonce. */
    ofSender: (sender: string): readonly E[] => senders.get(sender)?.entries ?? [],

    /**
     * Selects the transactions to process next, in fair order; those of one sender stay in nonce order.
     *
     * @param eligibleOf returns those of a sender's transactions that may be selected.
     */
    select(limits: SelectionLimits, eligibleOf: (ofSender: readonly E[]) => readonly E[]): E[] {
      const ofSource = (source: SourceFlow<E>): E[] => inFairOrder(source, ({ entries }) => eligibleOf(entries));
      const [selected = []] = inPortions(inFairOrder(all, ofSource), limits);
      return selected;
    },
  };
}

function createGroup<F extends Flow>(): FlowGroup<F> {
  return { flows: new Map(), pending: 0, time: 0, isStale: false };
}

/** Returns the flow with this key, after which the caller adds a transaction. An idle flow starts at the virtual time. */
function enter<F extends Flow>(group: FlowGroup<F>, key: string | undefined, create: () => F): F {
  const time = timeOf(group);
  const flow = group.flows.get(key) ?? create();
  if (flow.pending === 0) {
    flow.served = Math.max(flow.served, time);
  }
  group.flows.set(key, flow);
  return flow;
}

/**
 * Records that a flow was served. A flow that is behind the virtual time forfeits the difference. Otherwise, the
 * transactions queued behind one that waited or expired would be selected in a burst.
 */
function serve<F extends Flow>(group: FlowGroup<F>, flow: F, slots: number): void {
  flow.served = Math.max(flow.served + slots, group.time);
  group.isStale = true;
}

/**
 * Returns the virtual time of a group: the average of what its flows were served. Leaves out flows whose transactions,
 * pending ones included, are all due by then, and drops the idle ones among them. Computed once for all removals
 * before, because it visits every flow.
 */
function timeOf<F extends Flow>(group: FlowGroup<F>): number {
  if (!group.isStale) {
    return group.time;
  }
  group.isStale = false;
  const { flows } = group;
  if (group.pending === 0) {
    // Nothing waits, so no flow is ahead of another.
    flows.clear();
    return group.time;
  }
  const byEnd = [...flows].sort(([, a], [, b]) => a.served + a.pending - (b.served + b.pending));
  // Relative to the previous time, so that the sum stays exact after years.
  let sum = byEnd.reduce((total, [, { served }]) => total + served - group.time, 0);
  let time = group.time;
  for (const [i, [key, { served, pending }]] of byEnd.entries()) {
    time = Math.max(time, group.time + sum / (byEnd.length - i));
    if (served + pending > time) {
      break;
    }
    sum -= served - group.time;
    if (pending === 0) {
      flows.delete(key);
    }
  }
  group.time = time;
  return time;
}

/**
 * Merges the transactions of several flows, sorted by the virtual time at which they are due. The order within each
 * flow stays. At equal times, the transaction with fewer earlier ones in its flow comes first.
 */
function inFairOrder<F extends Flow, E extends QueuedTransaction>(
  group: FlowGroup<F>,
  entriesOf: (flow: F) => readonly E[],
): E[] {
  const time = timeOf(group);
  const timed = [...group.flows.values()].flatMap((flow) => {
    let start = flow.served;
    return entriesOf(flow).map((entry, position) => {
      const due = start + slotsOf(entry);
      start = Math.max(due, time);
      return { entry, due, position };
    });
  });
  return timed.sort((a, b) => a.due - b.due || a.position - b.position).map(({ entry }) => entry);
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
