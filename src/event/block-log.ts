/**
 * Event log of the chain. Events of the latest blocks are cached and shared by all subscribers. Older blocks are read
 * from the database one at a time, however many subscribers request them. Without subscribers, nothing is read.
 */
import { LRUCache } from "lru-cache";
import { createSerialQueue } from "../base/async/serial-queue.js";
import {
  type BlockEvents,
  type EventfulBlock,
  type EventMessage,
  listEvents,
  type LoggedEvent,
  positionOfBlock,
  type TransactionReading,
} from "./block-events.js";
import type { CursorPosition, Watching } from "./watch-request.js";

/** Access rules of programs. */
export interface EventReadership {
  /** Returns the addresses whose programs the caller may read now. An identity is 0x and 64 lower-case hex digits. */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /** Returns the owners of programs by address. Owners never change. */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

export interface BlockLogDeps {
  /** Reads an existing block. Rejects with RpcError PRUNED if its transactions are not retained. */
  readonly readBlock: (number: bigint) => Promise<EventfulBlock>;
  readonly reading: TransactionReading;
  readonly readership: EventReadership;
  /** Returns hash and number of the latest block. */
  readonly head: () => { readonly hash: string; readonly number: bigint } | undefined;
  /** Limit on the memory of all caches together. */
  readonly maxBytes: number;
}

/** Result of a search for the next event. */
export interface Found {
  /** Position of the event; the end of the block if no event was found. */
  readonly at: CursorPosition;
  readonly message: EventMessage | undefined;
}

export interface BlockLog {
  /**
   * Searches one block for the next event that the subscriber requested and may read under the current access rules.
   *
   * @param after position in the block, or the end of the previous block; the block must exist.
   * @throws RpcError PRUNED
   */
  next(after: CursorPosition, watching: Watching, identity: string | undefined): Promise<Found>;
  /** Clears all caches, for example after the chain was replaced. */
  forget(): void;
}

/** Limit on the latest blocks that are cached. */
const maxRecentBlocks = 256n;
/** Approximate cache size of the readable programs of a block: fixed part, and part for each address. */
const readableBytes = 300;
const readableAddressBytes = 60;

/** Returns the number of the block that contains the next events after a position. */
export function blockAfter({ block, position }: CursorPosition): bigint {
  return position === positionOfBlock ? block + 1n : block;
}

/** Creates a log with empty caches. */
export function createBlockLog({ readBlock, reading, readership, head, maxBytes }: BlockLogDeps): BlockLog {
  const queue = createSerialQueue();
  // Separate caches, so that slow subscribers do not evict the blocks that all others read. Either cache can store the
  // largest block, of 2.5 MiB.
  const recent = createCache(maxBytes / 2);
  const older = createCache((3 * maxBytes) / 8);
  const underWay = new Map<bigint, Promise<BlockEvents>>();
  const owners = new WeakMap<BlockEvents, Promise<ReadonlyMap<string, string>>>();
  const readable = new LRUCache<string, ReadonlySet<string>>({
    maxSize: Math.ceil(maxBytes / 8),
    sizeCalculation: ({ size }) => readableBytes + readableAddressBytes * size,
  });

  function read(number: bigint): BlockEvents | Promise<BlockEvents> {
    const isRecent = number + maxRecentBlocks > (head()?.number ?? 0n);
    const known = (isRecent ? recent : older).get(number) ?? underWay.get(number);
    if (known !== undefined) {
      return known;
    }
    const load = async (): Promise<BlockEvents> => await listEvents(await readBlock(number), reading);
    const loading = (isRecent ? load() : queue(load)).then((events) => {
      // Not cached if `forget` ran in the meantime.
      if (underWay.get(number) === loading) {
        (isRecent ? recent : older).set(number, events);
      }
      return events;
    });
    underWay.set(number, loading);
    const done = (): void => {
      if (underWay.get(number) === loading) {
        underWay.delete(number);
      }
    };
    loading.then(done, done);
    return loading;
  }

  /**
   * Returns the addresses in a block that the caller may read. Requests with equal identities share the result until
   * the next block, which may change access rules.
   */
  async function readableIn(block: BlockEvents, identity: string | undefined): Promise<ReadonlySet<string>> {
    const key = `${head()?.hash} ${block.number} ${identity ?? ""}`;
    const known = readable.get(key);
    if (known !== undefined) {
      return known;
    }
    const found = await readership.readableOf(block.addresses, identity);
    readable.set(key, found);
    return found;
  }

  function ownersIn(block: BlockEvents): Promise<ReadonlyMap<string, string>> {
    let found = owners.get(block);
    if (found === undefined) {
      found = readership.ownersOf(block.addresses);
      owners.set(block, found);
      found.catch(() => owners.delete(block));
    }
    return found;
  }

  /** Returns the message to send for a requested event, redacted if necessary; undefined to send nothing. */
  async function receive(
    event: LoggedEvent,
    block: BlockEvents,
    watching: Watching,
    identity: string | undefined,
    ownerOf: ReadonlyMap<string, string> | undefined,
  ): Promise<EventMessage | undefined> {
    if (event.address === undefined || (await readableIn(block, identity)).has(event.address)) {
      return event.message;
    }
    return watching.matches(event, false, ownerOf) ? event.withheld : undefined;
  }

  return {
    async next(after, watching, identity) {
      const number = blockAfter(after);
      const block = await read(number);
      const ownerOf = watching.requestsOwners && block.addresses.length > 0 ? await ownersIn(block) : undefined;
      const { events } = block;
      for (
        let i = after.position === positionOfBlock ? 0 : firstAfter(events, after.position);
        i < events.length;
        i++
      ) {
        const event = events[i]!;
        // Checks the filter first: most events match no filter, and this avoids the access check.
        const message = watching.matches(event, true, ownerOf)
          ? await receive(event, block, watching, identity, ownerOf)
          : undefined;
        if (message !== undefined) {
          return { at: { block: number, position: event.position }, message };
        }
      }
      return { at: { block: number, position: positionOfBlock }, message: undefined };
    },
    forget() {
      recent.clear();
      older.clear();
      underWay.clear();
      readable.clear();
    },
  };
}

/** Creates an LRU cache of block events. */
function createCache(maxBytes: number): LRUCache<bigint, BlockEvents> {
  return new LRUCache({
    max: Number(maxRecentBlocks),
    maxSize: Math.ceil(maxBytes),
    sizeCalculation: ({ bytes }) => bytes,
  });
}

/** Returns the index of the first event after a position, by binary search. */
function firstAfter(events: readonly LoggedEvent[], position: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.position > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
