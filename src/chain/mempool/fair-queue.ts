/**
 * Start-time fair queueing of pending transactions. The sources of transactions share the capacity of a block, and the
 * senders of a source share the capacity of that source. Each source and each sender is a flow that advances in virtual
 * time, in units of block slots. A transaction that costs n slots therefore waits for at most n slots of each other
 * source, however large or old the backlog of that source is.
 *
 * A flow that was idle starts at the current virtual time, so it gains no advantage. A large transaction cannot starve,
 * because virtual time eventually reaches it.
 */

/** Transaction as far as the queue reads it. */
export interface QueuedTransaction {
  readonly source: string | undefined;
  readonly sender: string;
  readonly nonce: bigint;
  readonly sizeBytes: number;
  /** Virtual times on arrival, before which the transaction cannot start: among all sources, and among its source's senders. */
  startTimes: { readonly source: number; readonly sender: number };
}

/** Limits on one selection. The first transaction is selected even if it exceeds `bytes`. */
export interface SelectionLimits {
  readonly count: number;
  readonly bytes: number;
}

interface Flow {
  /** Virtual time up to which the flow was served. */
  served: number;
}

interface SourceFlow<E> extends Flow {
  readonly key: string | undefined;
  /** Virtual time among the senders of the source. */
  time: number;
  readonly senders: Set<SenderFlow<E>>;
}

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

/**
 * Creates an empty queue. A flow is deleted once it has no pending transactions, because the virtual time is then at
 * least as late as the time up to which the flow was served.
 */
export function createFairQueue<E extends QueuedTransaction>() {
  const sources = new Map<string | undefined, SourceFlow<E>>();
  const senders = new Map<string, SenderFlow<E>>();
  let time = 0;

  /** Returns the flow of a sender. Creates it at this source if the sender has no pending transactions. */
  function flowOf({ source: key, sender }: E): SenderFlow<E> {
    const existing = senders.get(sender);
    if (existing !== undefined) {
      return existing;
    }
    const source = sources.get(key) ?? { key, served: 0, time: 0, senders: new Set() };
    const flow: SenderFlow<E> = { source, served: 0, entries: [] };
    source.senders.add(flow);
    sources.set(key, source);
    senders.set(sender, flow);
    return flow;
  }

  return {
    /**
     * Adds a transaction, and sets its start times. A sender with pending transactions stays with its first source, so
     * that all its transactions form one flow.
     */
    add(entry: E): void {
      const { source, entries } = flowOf(entry);
      entry.startTimes = { source: time, sender: source.time };
      entries.splice(entries.findLastIndex(({ nonce }) => nonce <= entry.nonce) + 1, 0, entry);
    },

    /** Removes a transaction. `isServed` is true if it entered a block or was rejected, false if it expired. */
    remove(entry: E, isServed: boolean): void {
      const sender = senders.get(entry.sender)!;
      const { source, entries } = sender;
      if (isServed) {
        const slots = slotsOf(entry);
        sender.served = Math.max(sender.served, entry.startTimes.sender) + slots;
        source.time = Math.max(source.time, sender.served);
        source.served = Math.max(source.served, entry.startTimes.source) + slots;
        time = Math.max(time, source.served);
      } else {
        // An expired transaction forfeits its wait. Otherwise, those queued behind it would be selected in a burst.
        sender.served = Math.max(sender.served, source.time);
        source.served = Math.max(source.served, time);
      }
      entries.splice(entries.indexOf(entry), 1);
      if (entries.length === 0) {
        senders.delete(entry.sender);
        source.senders.delete(sender);
      }
      if (source.senders.size === 0) {
        sources.delete(source.key);
      }
    },

    /** Returns the pending transactions of a sender by nonce. */
    ofSender: (sender: string): readonly E[] => senders.get(sender)?.entries ?? [],

    /**
     * Selects the transactions to process next, in fair order; those of one sender stay in nonce order.
     *
     * @param eligibleOf returns those of a sender's transactions that may be selected.
     */
    select(limits: SelectionLimits, eligibleOf: (ofSender: readonly E[]) => readonly E[]): E[] {
      const perSource = [...sources.values()].map(({ served, senders: ofSource }) => {
        const perSender = [...ofSource].map((sender) => ({
          served: sender.served,
          entries: eligibleOf(sender.entries),
        }));
        return { served, entries: inFairOrder(perSender, ({ startTimes }) => startTimes.sender) };
      });
      const [selected = []] = inPortions(
        inFairOrder(perSource, ({ startTimes }) => startTimes.source),
        limits,
      );
      return selected;
    },
  };
}

/**
 * Merges the transactions of several flows, sorted by the virtual time at which their flow has served them. The order
 * within each flow stays. At equal times, the transaction with fewer earlier ones in its flow comes first.
 */
function inFairOrder<E extends QueuedTransaction>(
  flows: readonly { readonly served: number; readonly entries: readonly E[] }[],
  startOf: (entry: E) => number,
): E[] {
  const timed = flows.flatMap(({ served, entries }) => {
    let finish = served;
    return entries.map((entry, position) => {
      finish = Math.max(finish, startOf(entry)) + slotsOf(entry);
      return { entry, finish, position };
    });
  });
  return timed.sort((a, b) => a.finish - b.finish || a.position - b.position).map(({ entry }) => entry);
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
