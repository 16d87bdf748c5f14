/** What a watcher asks for: which events, and after which place of the stream. */
import { EventKind, EventKindSchema, type WatchRequest } from "../../gen/gatehouse/event/v1/event_pb.js";
import { addressForm } from "../base/signed-texts.js";
import { Failure } from "../rpc/errors.js";
import { normalizeBareHex } from "../rpc/parameters.js";
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

/** Most of each list. */
const mostNamed = 100;

/**
 * Reads a request.
 *
 * @throws Failure INVALID_REQUEST
 */
export function readWatchRequest(request: WatchRequest): Watching {
  const addresses = readList("addresses", request.addresses, checkAddress);
  const owners = readList("owners", request.owners, (text) => normalizeBareHex("An owner is", text));
  const transactions = readList("transactions", request.transactions, (text) =>
    normalizeBareHex("A transaction's hash is", text),
  );
  const kinds = new Set(request.kinds.map(checkKind));
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

function readList(name: string, texts: readonly string[], read: (text: string) => string): ReadonlySet<string> {
  if (texts.length > mostNamed) {
    throw new Failure("INVALID_REQUEST", `${name} may be given ${mostNamed} times at most, not ${texts.length}.`);
  }
  return new Set(texts.map(read));
}

function checkAddress(text: string): string {
  if (!addressForm.test(text)) {
    throw new Failure("INVALID_REQUEST", "A program's address is stor- and 40 lower-case hex digits.");
  }
  return text;
}

/** Clients of gRPC may send any number. */
const known: ReadonlySet<number> = new Set(EventKindSchema.values.map(({ number }) => number));

function checkKind(kind: EventKind): EventKind {
  if (!known.has(kind) || kind === EventKind.UNSPECIFIED) {
    throw new Failure("INVALID_REQUEST", `There is no kind of events with the number ${kind}.`);
  }
  return kind;
}

function readStart({ from, fromBlock }: WatchRequest): Place | undefined {
  if (from !== "") {
    return readCursor(from);
  }
  if (fromBlock === undefined) {
    return undefined;
  }
  if (fromBlock > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new Failure("INVALID_REQUEST", `fromBlock is a number up to ${Number.MAX_SAFE_INTEGER}.`);
  }
  return { block: fromBlock < 1n ? 0n : fromBlock - 1n, place: placeOfBlock };
}

/** Digits that fit a number; a block of 4 MiB has no more places than the second part holds. */
const cursorForm = /^(0|[1-9][0-9]{0,15})(?:\.(0|[1-9][0-9]{0,8}))?$/;

function readCursor(text: string): Place {
  const [, block, place] = cursorForm.exec(text) ?? [];
  if (block === undefined || Number(block) > Number.MAX_SAFE_INTEGER || (block === "0" && place !== undefined)) {
    throw new Failure("INVALID_REQUEST", "from is the cursor of a message of this stream, as it was given.");
  }
  return { block: BigInt(block), place: place === undefined ? placeOfBlock : Number(place) };
}
