/** A peer as the address book has it, and as everybody is shown it. */
import { makeImmutable } from "../../base/caches/immutable.js";
import type { Head, ReadStatus } from "./status.js";

/** Who named a peer: the file of --peers, the operator, itself in a handshake, or another peer. */
export type PeerOrigin = "file" | "operator" | "handshake" | "gossip";

/** A peer, with the fields of the contract's `Peer` message. */
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

/** What is kept of a peer over restarts. */
export interface StoredPeer {
  /** Where nodes reach it, which names it: scheme://host:port. */
  readonly endpoint: string;
  readonly origin: PeerOrigin;
  /** The key that it proved: 0x and 64 lower-case hex digits. */
  readonly identity: string | undefined;
  /** The key that the operator wants it to prove. */
  readonly expectedIdentity: string | undefined;
  /** Where clients reach it. */
  readonly connectionString: string | undefined;
  /** When it last proved its identity; undefined when it did not, or no longer does. */
  readonly verifiedMs: number | undefined;
  readonly lastSeenMs: number | undefined;
  /** Calls that failed since then. */
  readonly failures: number;
  /** It is not dialed before. */
  readonly nextTryMs: number;
}

export interface BookEntry extends StoredPeer {
  /** The endpoint that it names itself by; another one where the operator knows a better way. */
  readonly announced: string;
  /** The last call to it succeeded. */
  readonly online: boolean;
  readonly accepting: boolean;
  readonly head: Head | undefined;
  /** When an authority said that this is its newest block, as the peer has it; 0 where it has no such word. */
  readonly statedMs: number;
  /** The oldest block whose transactions it has. */
  readonly lowestBlock: bigint;
  /** What its clock showed, less this process's own that nobody sets; undefined while it has not said. */
  readonly clockOffsetMs: number | undefined;
  /** Of the process that shook hands last, in hex; another one where it was started again. */
  readonly instanceId: string | undefined;
  /** A handshake with it succeeded since this process began, and nothing has gone wrong since. */
  readonly handshaken: boolean;
  /** Why it is not verified, or not believed. */
  readonly message: string | undefined;
  /** Until then its blocks are not wanted, and what it says of its chain does not count. */
  readonly distrustedUntilMs: number;
  /** How often it was distrusted. */
  readonly offences: number;
  readonly lastDialedMs: number;
}

/** A peer that nothing is known of. */
export const blank: StoredPeer = {
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

/** The entry of a peer that was not dialed since this process began. */
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
    distrustedUntilMs: 0,
    offences: 0,
    lastDialedMs: 0,
  });
}

/** What changes when a peer has answered. */
export function seen({ head, lowestBlock = 0n, accepting, statedMs, clockOffsetMs }: ReadStatus, now: number) {
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

/** The operator named it. */
export const isOperators = ({ origin }: StoredPeer): boolean => origin === "file" || origin === "operator";
/** It was neither named by the operator nor verified. */
export const isUnverified = (entry: StoredPeer): boolean => !isOperators(entry) && entry.verifiedMs === undefined;
/** Another peer named it, and that is all. */
export const isUnverifiedGossip = (entry: StoredPeer): boolean =>
  entry.origin === "gossip" && entry.verifiedMs === undefined;

/** The identity that it proved in a handshake since this process began; undefined once something has gone wrong. */
export const provenIdentity = (entry: BookEntry | undefined): string | undefined =>
  entry?.handshaken === true ? entry.identity : undefined;

/** Addresses that nobody has dialed yet are of no interest to anybody else. */
export function isShown(entry: BookEntry): boolean {
  return !isUnverifiedGossip(entry) || entry.message !== undefined;
}

const shownPeers = new WeakMap<BookEntry, Peer>();

/** The peer as it is shown; of an entry that did not change, always the same. */
export function toPeer(entry: BookEntry): Peer {
  let peer = shownPeers.get(entry);
  if (peer === undefined) {
    peer = showPeer(entry);
    shownPeers.set(entry, peer);
  }
  return peer;
}

function showPeer(entry: BookEntry): Peer {
  const { endpoint, identity, expectedIdentity, connectionString, verifiedMs, lastSeenMs, online, accepting } = entry;
  const isVerified = verifiedMs !== undefined;
  return makeImmutable({
    connection: { connectionString: connectionString ?? endpoint },
    identity: identity ?? expectedIdentity ?? "",
    verification: {
      status: isVerified,
      message: entry.message ?? (isVerified ? undefined : "The peer has not answered yet."),
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
