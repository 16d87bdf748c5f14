/**
 * The blocks as a log of events. The newest are kept in memory, once for all who watch; older ones are read from the
 * database, one after the other, however many ask. Nothing is read while nobody watches.
 */
import { LRUCache } from "lru-cache";
import { createSerialQueue } from "../base/async/serial-queue.js";
import {
  type BlockEvents,
  type EventfulBlock,
  type EventMessage,
  listEvents,
  type LoggedEvent,
  placeOfBlock,
  type TransactionReading,
} from "./block-events.js";
import type { Place, Watching } from "./watch-request.js";

/** Who may hear of programs. */
export interface EventReadership {
  /** Those of the addresses whose programs the caller may read now; an identity is 0x and 64 lower-case hex digits. */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /** Owners of programs, by their addresses; they never change. */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** What the log is made of. */
export interface BlockLogDeps {
  /** A block that is there. Rejects with Failure PRUNED where its transactions are not. */
  readonly readBlock: (number: bigint) => Promise<EventfulBlock>;
  readonly reading: TransactionReading;
  readonly readership: EventReadership;
  /** Hash and number of the newest block. */
  readonly head: () => { readonly hash: string; readonly number: bigint } | undefined;
  /** Of all that is kept. */
  readonly maxBytes: number;
}

/** How far a look came. */
export interface Found {
  /** The place of the event; where there is none, the end of the block. */
  readonly at: Place;
  readonly message: EventMessage | undefined;
}

/** The log. */
export interface BlockLog {
  /**
   * Looks for the next event that somebody asks for and may hear of, as access rules are now, in one block.
   *
   * @param after a place in the block, or the end of the one before; the block must be there.
   * @throws Failure PRUNED
   */
  next(after: Place, watching: Watching, identity: string | undefined): Promise<Found>;
  /** Forgets everything: the chain may be another one. */
  forget(): void;
}

/** How many of the newest blocks are kept. */
const mostRecent = 256n;
/** Roughly what is kept of who may read the programs of a block. */
const readableBytes = 300;
const readableAddressBytes = 60;

/** Number of the block that comes next, or that is gone on with. */
export function blockAfter({ block, place }: Place): bigint {
  return place === placeOfBlock ? block + 1n : block;
}

/** Builds the log; nothing is in memory yet. */
export function createBlockLog({ readBlock, reading, readership, head, maxBytes }: BlockLogDeps): BlockLog {
  const inTurn = createSerialQueue();
  // Those that are behind must not push out what all the others are at. Either part holds the largest block: 2.5 MiB.
  const recent = createKept(maxBytes / 2);
  const older = createKept((3 * maxBytes) / 8);
  const underWay = new Map<bigint, Promise<BlockEvents>>();
  const owners = new WeakMap<BlockEvents, Promise<ReadonlyMap<string, string>>>();
  const readable = new LRUCache<string, ReadonlySet<string>>({
    maxSize: Math.ceil(maxBytes / 8),
    sizeCalculation: ({ size }) => readableBytes + readableAddressBytes * size,
  });

  function read(number: bigint): BlockEvents | Promise<BlockEvents> {
    const isRecent = number + mostRecent > (head()?.number ?? 0n);
    const known = (isRecent ? recent : older).get(number) ?? underWay.get(number);
    if (known !== undefined) {
      return known;
    }
    const load = async (): Promise<BlockEvents> => await listEvents(await readBlock(number), reading);
    const loading = (isRecent ? load() : inTurn(load)).then((events) => {
      // What was forgotten meanwhile is not kept.
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

  /** Asked once for all who are the same to the rules, and anew with each block, which may change them. */
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

  /** What somebody hears of an event that he asks for; undefined where he may not. */
  async function hear(
    event: LoggedEvent,
    block: BlockEvents,
    watching: Watching,
    identity: string | undefined,
    ownerOf: ReadonlyMap<string, string> | undefined,
  ): Promise<EventMessage | undefined> {
    if (event.address === undefined || (await readableIn(block, identity)).has(event.address)) {
      return event.message;
    }
    return watching.wants(event, false, ownerOf) ? event.withheld : undefined;
  }

  return {
    async next(after, watching, identity) {
      const number = blockAfter(after);
      const block = await read(number);
      const ownerOf = watching.asksOwners && block.addresses.length > 0 ? await ownersIn(block) : undefined;
      const { events } = block;
      for (let i = after.place === placeOfBlock ? 0 : firstAfter(events, after.place); i < events.length; i++) {
        const event = events[i]!;
        // Most are asked for by nobody, and nothing has to be known of them.
        const message = watching.wants(event, true, ownerOf)
          ? await hear(event, block, watching, identity, ownerOf)
          : undefined;
        if (message !== undefined) {
          return { at: { block: number, place: event.place }, message };
        }
      }
      return { at: { block: number, place: placeOfBlock }, message: undefined };
    },
    forget() {
      recent.clear();
      older.clear();
      underWay.clear();
      readable.clear();
    },
  };
}

/** Blocks in memory, those that were used last. */
function createKept(maxBytes: number): LRUCache<bigint, BlockEvents> {
  return new LRUCache({ max: Number(mostRecent), maxSize: Math.ceil(maxBytes), sizeCalculation: ({ bytes }) => bytes });
}

/** Index of the first event after a place. */
function firstAfter(events: readonly LoggedEvent[], place: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.place > place) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
