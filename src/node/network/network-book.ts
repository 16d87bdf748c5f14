/** Whom a node knows: the stored address book and the peers file, and what the operator does with them. */
import { isStrongKey } from "../../base/crypto/key-validation.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { StartError } from "../../base/errors/start-error.js";
import { findFile } from "../../config/data-dir-files.js";
import { readPeersFile } from "../../config/peers-file.js";
import type { Database } from "../../db/queries/database.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import { createDialRateLimit, type DialRateLimit } from "../../peers/handshake/dial-rate-limit.js";
import type { Dialer } from "../../peers/handshake/dialer.js";
import { checkHost, type EndpointPolicy, parseEndpoint } from "../../peers/address-book/endpoint.js";
import { createPeerBook, type PeerBook } from "../../peers/address-book/peer-book.js";
import { createBookSaver, createPeerStore } from "../../peers/address-book/peer-store.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";

/** How many peers one peer is asked for at a time. */
export const peersWanted = 50;

/** The address book of a node. */
export interface NodeBook {
  readonly book: PeerBook;
  /** Which endpoints may be named. */
  readonly policy: EndpointPolicy;
  /** How often others are dialed. */
  readonly pace: DialRateLimit;
  /** Stores what has changed; nothing on a reader, whose database another node writes. */
  readonly save: () => Promise<void>;
}

/** Opens the address book. That of a standby is empty: another node with its key is in the network. */
export async function openBook(
  { config }: NodeCore,
  { database, ownIdentity }: { readonly database: Database; readonly ownIdentity: string },
): Promise<NodeBook> {
  const policy: EndpointPolicy = { tls: config.omniTls, allowPrivate: config.allowPrivatePeers };
  const store = createPeerStore(database);
  const isNobody = config.role === "standby";
  const stored = isNobody ? [] : await store.load();
  const file = isNobody ? undefined : findFile(config.dataDir, config.peersFile, "peers");
  const named = file === undefined ? [] : await readPeersFile(file);
  const book = createPeerBook({
    ownIdentity,
    // Those of the file are what the file says today, their keys too.
    stored: stored.map((peer) =>
      peer.origin === "file" ? { ...peer, origin: "handshake", expectedIdentity: undefined } : peer,
    ),
    intervalMs: config.loopIntervalMs,
    nowMs: Date.now,
  });
  for (const { url, identity } of named) {
    book.add(parseFileEntry(url, policy), "file", identity);
  }
  const save = createBookSaver(book, store);
  const pace = createDialRateLimit(config.loopIntervalMs);
  return { book, policy, pace, save: config.role === "writer" ? save : () => Promise.resolve() };
}

function parseFileEntry(url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new Error(`The peers file cannot be used. ${errorMessage(error)}`);
  }
}

/**
 * The one form of this node's own endpoint. Warns when only nodes on this machine or site can call it.
 *
 * @throws StartError when nobody can.
 */
export function nameEndpoint({ warn }: NodeCore, { book, policy }: NodeBook, url: string): string {
  const endpoint = parseOwnEndpoint(url, policy);
  try {
    checkHost(endpoint, policy);
  } catch {
    if (!book.isEmpty()) {
      warn("omni", `Other machines cannot reach this node at ${endpoint}; name --public-url or --omni-url.`);
    }
  }
  return endpoint;
}

function parseOwnEndpoint(url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new StartError(`--omni-url cannot be used. ${errorMessage(error)}`);
  }
}

/** How many peers there are: known, verified, and of those online. */
export interface PeerCounts {
  readonly known: number;
  readonly verified: number;
  readonly online: number;
}

export function countPeers({ book }: NodeBook): PeerCounts {
  const entries = book.entries();
  const verified = entries.filter(({ verifiedMs }) => verifiedMs !== undefined);
  return {
    known: entries.length,
    verified: verified.length,
    online: verified.filter(({ online }) => online).length,
  };
}

/** What the operator does with the book. */
export interface BookCommands {
  /** Adds a peer and asks it. Gives its endpoint. */
  addPeer(endpoint: string, identity: string | undefined): Promise<string>;
  /** Forgets a peer; false when it is unknown. */
  removePeer(endpoint: string): Promise<boolean>;
}

export function createBookCommands(
  { addresses }: NodeCore,
  { book, policy, save }: NodeBook,
  { dialer, client }: { readonly dialer: Dialer; readonly client: PeerClient },
): BookCommands {
  return {
    async addPeer(text, identity) {
      const endpoint = parseEndpoint(text, policy);
      if (identity !== undefined && !isStrongKey(identity)) {
        throw new RpcError(
          "INVALID_REQUEST",
          "The identity is no key of a node: it is of small order, or not canonical.",
        );
      }
      if (endpoint === addresses.omniUrl) {
        throw new RpcError("INVALID_REQUEST", "It is this node itself.");
      }
      book.add(endpoint, "operator", identity);
      await dialer.underWay(endpoint);
      await dialer.dial(endpoint, peersWanted);
      await save();
      return endpoint;
    },
    async removePeer(text) {
      const endpoint = parseEndpoint(text, policy);
      const isForgotten = book.forget(endpoint);
      client.drop(endpoint);
      await save();
      return isForgotten;
    },
  };
}
