/** Peer as stored in the address book, and as API responses show it. */
import { makeImmutable } from "../../base/caches/immutable.js";
import { peerReasons } from "./peer-reasons.js";
import type { VerifiedStatus } from "./status.js";

/** Origin of a peer: the file of --peers, the operator, a handshake by the peer itself, or gossip of another peer. */
export type PeerOrigin = "file" | "operator" | "handshake" | "gossip";

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

/** Peer of which only some facts are known. */
export type NewPeer = Pick<StoredPeer, "endpoint" | "origin"> & Partial<StoredPeer>;

export interface BookEntry extends StoredPeer, Omit<VerifiedStatus, "head"> {
  readonly head: VerifiedStatus["head"] | undefined;
  /** Endpoint that the peer announces for itself. Differs from the key if the operator knows a better route. */
  readonly announced: string;
  /** True if the last call to the peer succeeded. */
  readonly online: boolean;
  /** Id of the process that made the last handshake, in hex. Changes when the peer restarts. */
  readonly instanceId: string | undefined;
  /** True if a handshake succeeded since this process started, and neither a call nor a proof has failed since. */
  readonly handshaken: boolean;
  /** Reason for which the peer is not verified or is penalized. */
  readonly message: string | undefined;
  /** Error of the last call, if it failed. */
  readonly failure: string | undefined;
  /** Reason for which this node sends the peer no blocks, since the peer has requested some. */
  readonly refusal: string | undefined;
  /** Time until which the node does not download blocks from this peer, and ignores the chain state that it reports. */
  readonly penalizedUntilMs: number;
  /** Number of penalties. */
  readonly penalties: number;
  readonly lastDialedMs: number;
}

/** Creates the entry of a peer that was not dialed since this process started. */
export function entryOf(peer: NewPeer): BookEntry {
  return Object.freeze({
    ...{ identity: undefined, expectedIdentity: undefined, connectionString: undefined, verifiedMs: undefined },
    ...{ lastSeenMs: undefined, failures: 0, nextTryMs: 0 },
    ...peer,
    ...{ announced: peer.endpoint, instanceId: undefined, handshaken: false, lastDialedMs: 0 },
    ...{ online: false, accepting: false, head: undefined, statedMs: 0, lowestBlock: 0n, clockOffsetMs: undefined },
    ...{ message: undefined, failure: undefined, refusal: undefined, penalizedUntilMs: 0, penalties: 0 },
  });
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

/** Returns the reason for which the node does not use a peer; undefined if there is none. */
export const whyUnused = ({ message, failure, verifiedMs }: BookEntry): string | undefined =>
  message ?? failure ?? (verifiedMs === undefined ? peerReasons.notCalled() : undefined);

/** Returns the reason for which the node does not use a peer, or sends it no blocks; undefined if there is none. */
export const remarkOn = (entry: BookEntry): string | undefined => whyUnused(entry) ?? entry.refusal;

/** Peer with the fields of the contract's `Peer` message. */
export type Peer = ReturnType<typeof createPeerMessage>;

const peerMessages = new WeakMap<BookEntry, Peer>();

/** Returns the peer as API responses show it. The same entry always returns the same object. */
export function peerMessage(entry: BookEntry): Peer {
  const peer = peerMessages.get(entry) ?? createPeerMessage(entry);
  peerMessages.set(entry, peer);
  return peer;
}

function createPeerMessage(entry: BookEntry) {
  const { endpoint, identity, expectedIdentity, connectionString, verifiedMs, lastSeenMs, online, accepting } = entry;
  const isVerified = verifiedMs !== undefined;
  return makeImmutable({
    connection: { connectionString: connectionString ?? endpoint },
    identity: identity ?? expectedIdentity ?? "",
    verification: {
      status: isVerified,
      message: remarkOn(entry),
      timestampMs: verifiedMs === undefined ? undefined : BigInt(verifiedMs),
    },
    sync: { status: accepting, block: entry.head?.number, blockHash: entry.head?.hash },
    status: {
      online,
      timestampMs: lastSeenMs === undefined ? undefined : BigInt(lastSeenMs),
      ready: online && accepting && isVerified && whyUnused(entry) === undefined,
    },
  });
}
