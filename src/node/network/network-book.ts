/** Peers that a node knows: the stored address book and the peers file, and the operator's commands for them. */
import { isStrongKey } from "../../base/crypto/key-validation.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { InputError } from "../../base/errors/start-error.js";
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
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";

/** Number of peers that one peer is queried for at a time. */
export const minPeers = 50;

export interface NodeBook {
  readonly book: PeerBook;
  /** Rules for acceptable endpoints. */
  readonly policy: EndpointPolicy;
  /** Rate limit for dials. */
  readonly dialRateLimit: DialRateLimit;
  /**
   * Stores changes of the address book. Does nothing unless this node is the writer, because another node writes the
   * database.
   */
  readonly save: () => Promise<void>;
}

/**
 * Opens the address book. A standby has an empty one, because another node with its key is in the network.
 *
 * @throws InputError if the peers file is invalid.
 */
export async function openBook(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "subsystems">,
  { database, ownIdentity }: { readonly database: Database; readonly ownIdentity: string },
): Promise<NodeBook> {
  const { config } = core;
  const policy: EndpointPolicy = { tls: config.omniTls, allowPrivate: config.allowPrivatePeers };
  const store = createPeerStore(database);
  const isHidden = config.role === "standby";
  const stored = isHidden ? [] : await untilDatabaseResponds(core, () => store.load());
  const file = isHidden ? undefined : findFile(config.dataDir, config.peersFile, "peers");
  const named = file === undefined ? [] : await readPeersFile(file);
  const book = createPeerBook({
    ownIdentity,
    // The current peers file decides: an entry that was stored from it becomes an ordinary peer without a fixed key,
    // unless the file still names that peer.
    stored: stored.map((peer) =>
      peer.origin === "file" ? { ...peer, origin: "handshake", expectedIdentity: undefined } : peer,
    ),
    intervalMs: config.loopIntervalMs,
    nowMs: Date.now,
  });
  for (const { url, identity } of named) {
    book.add(parseFileEntry(file!, url, policy), "file", identity);
  }
  const save = createBookSaver(book, store);
  const dialRateLimit = createDialRateLimit(config.loopIntervalMs);
  return { book, policy, dialRateLimit, save: config.role === "writer" ? save : () => Promise.resolve() };
}

function parseFileEntry(file: string, url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new InputError(`The peers file ${file} is invalid. ${errorMessage(error)}`);
  }
}

/**
 * Returns the normalized form of this node's own endpoint. Warns if only nodes on this machine or site can call it.
 *
 * @throws InputError if the endpoint is invalid, or if its scheme does not match --omni-tls.
 */
export function nameEndpoint({ warn }: Pick<NodeCore, "warn">, { book, policy }: NodeBook, url: string): string {
  const endpoint = parseOwnEndpoint(url, policy);
  try {
    checkHost(endpoint, policy);
  } catch {
    if (!book.isEmpty()) {
      warn("omni", `Other machines cannot reach this node at ${endpoint}; set --public-url or --omni-url.`);
    }
  }
  return endpoint;
}

function parseOwnEndpoint(url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new InputError(`--omni-url is invalid. ${errorMessage(error)}`);
  }
}

/** Number of peers: known, verified, and verified peers that are online. */
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

/** Commands of the operator for the address book. */
export interface BookCommands {
  /** Adds a peer and dials it. Returns its normalized endpoint. */
  addPeer(endpoint: string, identity: string | undefined): Promise<string>;
  /** Removes a peer. Returns false if the peer is unknown. */
  removePeer(endpoint: string): Promise<boolean>;
}

export function createBookCommands(
  { addresses }: Pick<NodeCore, "addresses">,
  { book, policy, save }: NodeBook,
  { dialer, client }: { readonly dialer: Dialer; readonly client: PeerClient },
): BookCommands {
  return {
    async addPeer(text, identity) {
      const endpoint = parseEndpoint(text, policy);
      if (identity !== undefined && !isStrongKey(identity)) {
        throw new RpcError(
          "INVALID_REQUEST",
          "The identity is not a valid node key: it has a small order, or is not canonical.",
        );
      }
      if (endpoint === addresses.omniUrl) {
        throw new RpcError("INVALID_REQUEST", "The peer URL is this node's own address; add a different one.");
      }
      book.add(endpoint, "operator", identity);
      await dialer.dialInProgress(endpoint);
      await dialer.dial(endpoint, minPeers);
      await save();
      return endpoint;
    },
    async removePeer(text) {
      const endpoint = parseEndpoint(text, policy);
      const wasKnown = book.remove(endpoint);
      client.drop(endpoint);
      await save();
      return wasKnown;
    },
  };
}
