/** What a watcher asks for: which events, and after which place of the stream. */
import type { WatchRequest } from "../../gen/gatehouse/event/v1/event_pb.js";
import { wrongValue } from "../rpc/parameters.js";
import { type EventSubject, placeOfBlock } from "./block-events.js";

/** A place in the stream: after an event of a block. */
export interface Place {
  /** Number of the block; 0 for the genesis, after which everything comes. */
  readonly block: bigint;
  /** Of the event in there; {@link placeOfBlock} where the block is done. */
  readonly place: number;
}

/** A request that was read. */
export interface Watching {
  /** After which it goes on; undefined for the newest block. */
  readonly after: Place | undefined;
  /** Who owns programs decides on some events. */
  readonly asksOwners: boolean;
  /**
   * Whether an event is asked for.
   *
   * @param isReadable the caller may read its program: what he may not read is found by no address and no owner.
   * @param ownerOf owners by address, where they are asked for.
   */
  wants(event: EventSubject, isReadable: boolean, ownerOf?: ReadonlyMap<string, string>): boolean;
}

/**
 * Reads a request.
 *
 * @throws Failure INVALID_REQUEST
 */
export function readWatchRequest(request: WatchRequest): Watching {
  const addresses = new Set(request.addresses);
  const owners = new Set(request.owners);
  const transactions = new Set(request.transactions);
  const kinds = new Set(request.kinds);
  const isOfAll = addresses.size + owners.size + transactions.size === 0;
  return {
    after: readStart(request),
    asksOwners: owners.size > 0,
    wants({ kind, transaction, address }, isReadable, ownerOf) {
      if (kinds.size > 0 && !kinds.has(kind)) {
        return false;
      }
      if (isOfAll || (transaction === undefined && kinds.size > 0)) {
        return true;
      }
      return (
        (transaction !== undefined && transactions.has(transaction)) ||
        (isReadable &&
          address !== undefined &&
          (addresses.has(address) || (owners.size > 0 && owners.has(ownerOf?.get(address) ?? ""))))
      );
    },
  };
}

function readStart({ from, fromBlock }: WatchRequest): Place | undefined {
  if (from !== "") {
    return readCursor(from);
  }
  if (fromBlock === undefined) {
    return undefined;
  }
  return { block: fromBlock < 1n ? 0n : fromBlock - 1n, place: placeOfBlock };
}

/** Digits that fit a number; a block of 4 MiB has no more places than the second part holds. */
const cursorForm = /^(0|[1-9][0-9]{0,15})(?:\.(0|[1-9][0-9]{0,8}))?$/;

function readCursor(text: string): Place {
  const [, block, place] = cursorForm.exec(text) ?? [];
  if (block === undefined || Number(block) > Number.MAX_SAFE_INTEGER || (block === "0" && place !== undefined)) {
    throw wrongValue("from", "the cursor of a message of this stream, as it was given", text);
  }
  return { block: BigInt(block), place: place === undefined ? placeOfBlock : Number(place) };
}
