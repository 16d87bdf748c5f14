/** Peer as stored in the address book, and as API responses show it. */
import { makeImmutable } from "../../base/caches/immutable.js";
import type { Head, VerifiedStatus } from "./status.js";

/** Origin of a peer: the file of --peers, the operator, a handshake by the peer itself, or gossip of another peer. */
export type PeerOrigin = "file" | "operator" | "handshake" | "gossip";

/** Peer with the fields of the contract's `Peer` message. */
export interface Peer {
  readonly connection: { readonly connectionString: string };
  readonly identity: string;
  readonly verification: {
    readonly status: boolean;
    readonly message?: string | undefined;
    readonly timestampMs?: bigint | undefined;
  };
  readonly sync: {
    readonly status: boolean;
    readonly block?: bigint | undefined;
    readonly blockHash?: string | undefined;
  };
  readonly status: { readonly online: boolean; readonly timestampMs?: bigint | undefined; readonly ready: boolean };
}

/** Information about a peer that is stored across restarts. */
export interface StoredPeer {
  /** Endpoint for other nodes, which is the key of the entry: scheme://host:port. */
  readonly endpoint: string;
  readonly origin: PeerOrigin;
  /** Public key that the peer proved: 0x and 64 lowercase hex digits. */
  readonly identity: string | undefined;
  /** Public key that the operator requires the peer to prove. */
  readonly expectedIdentity: string | undefined;
  /** Address for clients. */
  readonly connectionString: string | undefined;
  /** Time of the last proof of identity; undefined if there was none, or if the proof no longer counts. */
  readonly verifiedMs: number | undefined;
  readonly lastSeenMs: number | undefined;
  /** Number of failed calls since the last response. */
  readonly failures: number;
  /** Time before which the peer is not dialed. */
  readonly nextTryMs: number;
}

export interface BookEntry extends StoredPeer {
  /** Endpoint that the peer announces for itself. Differs from the key if the operator knows a better route. */
  readonly announced: string;
  /** True if the last call to the peer succeeded. */
  readonly online: boolean;
  readonly accepting: boolean;
  readonly head: Head | undefined;
  /** Time of the latest signed head that the peer has for this block; 0 if it has none. */
  readonly statedMs: number;
  /** First block whose transactions the peer has. */
  readonly lowestBlock: bigint;
  /**
   * Clock of the peer minus the monotonic clock of this process, in milliseconds; undefined until the peer reports it.
   */
  readonly clockOffsetMs: number | undefined;
  /** Id of the process that made the last handshake, in hex. Changes when the peer restarts. */
  readonly instanceId: string | undefined;
  /** True if a handshake succeeded since this process started, and neither a call nor a proof has failed since. */
  readonly handshaken: boolean;
  /** Reason for which the peer is not verified or is penalized. */
  readonly message: string | undefined;
  /** Time until which the node does not download blocks from this peer, and ignores the chain state that it reports. */
  readonly penalizedUntilMs: number;
  /** Number of penalties. */
  readonly penalties: number;
  readonly lastDialedMs: number;
}

/** Peer without any information. */
export const unknownPeer: StoredPeer = {
  endpoint: "",
  origin: "gossip",
  identity: undefined,
  expectedIdentity: undefined,
  connectionString: undefined,
  verifiedMs: undefined,
  lastSeenMs: undefined,
  failures: 0,
  nextTryMs: 0,
};

/** Creates the entry of a peer that was not dialed since this process started. */
export function entryOf(peer: StoredPeer): BookEntry {
  return Object.freeze({
    ...peer,
    announced: peer.endpoint,
    online: false,
    accepting: false,
    head: undefined,
    statedMs: 0,
    lowestBlock: 0n,
    clockOffsetMs: undefined,
    instanceId: undefined,
    handshaken: false,
    message: undefined,
    penalizedUntilMs: 0,
    penalties: 0,
    lastDialedMs: 0,
  });
}

/** Returns the fields that change when a peer responds. */
export function responseFields(
  { head, lowestBlock = 0n, accepting, statedMs, clockOffsetMs }: VerifiedStatus,
  now: number,
) {
  return {
    head,
    lowestBlock,
    accepting,
    statedMs,
    clockOffsetMs,
    online: true,
    lastSeenMs: now,
    failures: 0,
    nextTryMs: 0,
  };
}

/** Returns true if the operator named the peer. */
export const isFromOperator = ({ origin }: StoredPeer): boolean => origin === "file" || origin === "operator";
/** Returns true if the peer was neither named by the operator nor verified. */
export const isUnverified = (entry: StoredPeer): boolean => !isFromOperator(entry) && entry.verifiedMs === undefined;
/** Returns true if the peer is known only by gossip. */
export const isUnverifiedGossip = (entry: StoredPeer): boolean =>
  entry.origin === "gossip" && entry.verifiedMs === undefined;

/**
 * Returns the identity that the peer proved in a handshake since this process started; undefined if there is none, or
 * if a call or a proof has failed since.
 */
export const provenIdentity = (entry: BookEntry | undefined): string | undefined =>
  entry?.handshaken === true ? entry.identity : undefined;

/**
 * Returns true if API responses show the peer. Unverified gossip is hidden until a handshake with the peer is rejected.
 */
export function isListed(entry: BookEntry): boolean {
  return !isUnverifiedGossip(entry) || entry.message !== undefined;
}

const peerMessages = new WeakMap<BookEntry, Peer>();

/** Returns the peer as API responses show it. The same entry always returns the same object. */
export function peerMessage(entry: BookEntry): Peer {
  let peer = peerMessages.get(entry);
  if (peer === undefined) {
    peer = createPeerMessage(entry);
    peerMessages.set(entry, peer);
  }
  return peer;
}

function createPeerMessage(entry: BookEntry): Peer {
  const { endpoint, identity, expectedIdentity, connectionString, verifiedMs, lastSeenMs, online, accepting } = entry;
  const isVerified = verifiedMs !== undefined;
  return makeImmutable({
    connection: { connectionString: connectionString ?? endpoint },
    identity: identity ?? expectedIdentity ?? "",
    verification: {
      status: isVerified,
      message: entry.message ?? (isVerified ? undefined : "The peer has not responded yet."),
      timestampMs: verifiedMs === undefined ? undefined : BigInt(verifiedMs),
    },
    sync: { status: accepting, block: entry.head?.number, blockHash: entry.head?.hash },
    status: {
      online,
      timestampMs: lastSeenMs === undefined ? undefined : BigInt(lastSeenMs),
      ready: online && accepting && isVerified && entry.message === undefined,
    },
  });
}
