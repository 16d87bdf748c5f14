/** Decoded watch request: event filter and start position. */
import type { WatchRequest } from "../../gen/gatehouse/event/v1/event_pb.js";
import { invalidValue } from "../rpc/parameters.js";
import { type EventSubject, positionOfBlock } from "./block-events.js";

/** Position in the stream, after an event of a block. */
export interface CursorPosition {
  /** Block number; 0 for the genesis, which precedes all events. */
  readonly block: bigint;
  /** Position of the event within the block; {@link positionOfBlock} at the end of the block. */
  readonly position: number;
}

export type DecodedWatchRequest = ReturnType<typeof readWatchRequest>;

/**
 * Decodes a request.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readWatchRequest(request: WatchRequest) {
  const addresses = new Set(request.addresses);
  const owners = new Set(request.owners);
  const transactions = new Set(request.transactions);
  const kinds = new Set(request.kinds);
  const cursor = request.from === "" ? undefined : readCursor(request.from);
  const isUnfiltered = addresses.size + owners.size + transactions.size === 0;
  return {
    /** Position after which the stream starts; undefined to start after the latest block. */
    after: readStart(cursor, request.fromBlock),
    /** Cursor of the request. The chain must have its block. */
    cursor,
    /** True if the filter requires the owners of programs. */
    requestsOwners: owners.size > 0,
    /**
     * Returns true if the filter matches an event.
     *
     * @param isReadable true if the caller may read the event's program; otherwise filters by address or owner never
     *   match.
     * @param ownerOf owners by address, if the filter requires them.
     */
    matches(
      { kind, transaction, address }: EventSubject,
      isReadable: boolean,
      ownerOf?: ReadonlyMap<string, string>,
    ): boolean {
      if (kinds.size > 0 && !kinds.has(kind)) {
        return false;
      }
      if (isUnfiltered || (transaction === undefined && kinds.size > 0)) {
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

function readStart(cursor: CursorPosition | undefined, fromBlock: bigint | undefined): CursorPosition | undefined {
  if (cursor !== undefined || fromBlock === undefined) {
    return cursor;
  }
  return { block: fromBlock < 1n ? 0n : fromBlock - 1n, position: positionOfBlock };
}

/** Block number of up to 16 digits, then an optional position of up to 9 digits, enough for a block of 4 MiB. */
const cursorPattern = /^(0|[1-9][0-9]{0,15})(?:\.(0|[1-9][0-9]{0,8}))?$/;

function readCursor(text: string): CursorPosition {
  const [, block, position] = cursorPattern.exec(text) ?? [];
  if (block === undefined || Number(block) > Number.MAX_SAFE_INTEGER || (block === "0" && position !== undefined)) {
    throw invalidValue("from", "an unchanged cursor of a message of this stream", text);
  }
  return { block: BigInt(block), position: position === undefined ? positionOfBlock : Number(position) };
}
