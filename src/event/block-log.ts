/**
 * Event log of the chain. Events of the latest blocks are cached and shared by all subscribers. Older blocks are read
 * from the database one at a time, however many subscribers request them. Without subscribers, nothing is read.
 */
import { LRUCache } from "lru-cache";
import { createSerialQueue } from "../base/async/serial-queue.js";
import {
  type BlockEvents,
  type SourceBlock,
  type EventMessage,
  listEvents,
  type LoggedEvent,
  positionOfBlock,
  type TransactionDecoder,
} from "./block-events.js";
import type { CursorPosition, DecodedWatchRequest } from "./watch-request.js";

interface EventReadAccess {
  /** Returns the addresses whose programs the caller may read now. An identity is 0x and 64 lower-case hex digits. */
  readableOf(addresses: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /** Returns the owners of programs by address. Owners never change. */
  ownersOf(addresses: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

interface BlockLogDeps {
  /** Reads an existing block. Rejects with RpcError PRUNED if its transactions are not retained. */
  readonly readBlock: (number: bigint) => Promise<SourceBlock>;
  readonly decoder: TransactionDecoder;
  readonly access: EventReadAccess;
  readonly head: () => { readonly hash: string; readonly number: bigint } | undefined;
  readonly maxBytes: number;
}

/** Subscriber that reads the log. */
interface LogReader {
  /** Public key; undefined if the subscriber is anonymous. */
  readonly identity: string | undefined;
  /**
   * Waits for a turn in the event loop. Subscribers that wait for the same query all go on when it ends, and cached blocks
   * are searched without waiting for anything: thousands of them would hold up all other requests.
   */
  readonly turn: () => Promise<void>;
}

export type BlockLog = ReturnType<typeof createBlockLog>;

/** Number of the latest blocks that count as recent, and limit on the blocks in each cache. */
const maxRecentBlocks = 256n;
/** Approximate cache size of the readable programs of a block, in bytes: fixed part, and part for each address. */
const readableBytes = 300;
const readableAddressBytes = 60;

/** Returns the number of the block that contains the next events after a position. */
export function blockAfter({ block, position }: CursorPosition): bigint {
  return position === positionOfBlock ? block + 1n : block;
}

export function createBlockLog({ readBlock, decoder, access, head, maxBytes }: BlockLogDeps) {
  const enqueue = createSerialQueue();
  const load = async (number: bigint): Promise<BlockEvents> => await listEvents(await readBlock(number), decoder);
  // Separate caches, so that slow subscribers do not evict the blocks that all others read. Either cache can store the
  // largest block, of 2.5 MiB.
  const recent = createCache(maxBytes / 2, load);
  const older = createCache((3 * maxBytes) / 8, (number) => enqueue(() => load(number)));
  const owners = new WeakMap<BlockEvents, Promise<ReadonlyMap<string, string>>>();
  const readable = new LRUCache<string, ReadonlySet<string>, () => Promise<ReadonlySet<string>>>({
    maxSize: Math.ceil(maxBytes / 8),
    sizeCalculation: ({ size }) => readableBytes + readableAddressBytes * size,
    fetchMethod: (_key, _stale, { context: check }) => check(),
    ignoreFetchAbort: true,
  });

  /** Returns the events of a block: from a cache, from a read in flight, or from a new read. */
  async function read(number: bigint): Promise<BlockEvents> {
    const isRecent = number + maxRecentBlocks > (head()?.number ?? 0n);
    return (await (isRecent ? recent : older).fetch(number))!;
  }

  /**
   * Returns the addresses in a block that the caller may read. Requests with equal identities share the query and its
   * result until the next block, which may change access rules.
   */
  async function readableIn(block: BlockEvents, { identity, turn }: LogReader): Promise<ReadonlySet<string>> {
    const key = `${head()?.hash} ${block.number} ${identity ?? ""}`;
    const known = readable.get(key);
    if (known !== undefined) {
      return known;
    }
    const found = await readable.fetch(key, { context: () => access.readableOf(block.addresses, identity) });
    await turn();
    return found!;
  }

  function ownersIn(block: BlockEvents): Promise<ReadonlyMap<string, string>> {
    let ownersOfBlock = owners.get(block);
    if (ownersOfBlock === undefined) {
      ownersOfBlock = access.ownersOf(block.addresses);
      owners.set(block, ownersOfBlock);
      ownersOfBlock.catch(() => owners.delete(block));
    }
    return ownersOfBlock;
  }

  /** Returns the message to send for a requested event, redacted if necessary; undefined to send nothing. */
  async function messageFor(
    event: LoggedEvent,
    block: BlockEvents,
    request: DecodedWatchRequest,
    reader: LogReader,
    ownerOf: ReadonlyMap<string, string> | undefined,
  ): Promise<EventMessage | undefined> {
    if (event.address === undefined || (await readableIn(block, reader)).has(event.address)) {
      return event.message;
    }
    return request.matches(event, false, ownerOf) ? event.redacted : undefined;
  }

  return {
    /**
     * Searches one block for the next event that the subscriber requested and may read under the current access rules.
     *
     * @param after position in the block, or the end of the previous block; the block must exist.
     * @returns the position of the event with its message; the end of the block without a message if there is none.
     * @throws RpcError PRUNED
     */
    async next(
      after: CursorPosition,
      request: DecodedWatchRequest,
      reader: LogReader,
    ): Promise<{ readonly position: CursorPosition; readonly message: EventMessage | undefined }> {
      const number = blockAfter(after);
      const block = await read(number);
      const ownerOf = request.requestsOwners && block.addresses.length > 0 ? await ownersIn(block) : undefined;
      await reader.turn();
      const { events } = block;
      const start = after.position === positionOfBlock ? 0 : firstAfter(events, after.position);
      for (let i = start; i < events.length; i++) {
        const event = events[i]!;
        // The filter is checked first: most events do not match it, and then need no access check.
        const message = request.matches(event, true, ownerOf)
          ? await messageFor(event, block, request, reader, ownerOf)
          : undefined;
        if (message !== undefined) {
          return { position: { block: number, position: event.position }, message };
        }
      }
      return { position: { block: number, position: positionOfBlock }, message: undefined };
    },
    /** Clears all caches, for example after the chain was replaced. */
    clear(): void {
      recent.clear();
      older.clear();
      readable.clear();
    },
  };
}

/** Creates an LRU cache of block events. A read that is in flight when the cache is cleared is not stored. */
function createCache(maxBytes: number, load: (number: bigint) => Promise<BlockEvents>): LRUCache<bigint, BlockEvents> {
  return new LRUCache({
    max: Number(maxRecentBlocks),
    maxSize: Math.ceil(maxBytes),
    sizeCalculation: ({ bytes }) => bytes,
    fetchMethod: load,
    ignoreFetchAbort: true,
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
