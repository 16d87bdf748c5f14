/** Peers that a node knows: the stored address book and the peers file, and the operator's commands for them. */
import type { NodeKey } from "../../base/crypto/node-key.js";
import { isStrongKey } from "../../base/crypto/key-validation.js";
import { errorMessage } from "../../base/errors/error-message.js";
import { InputError } from "../../base/errors/start-error.js";
import type { Chain } from "../../chain/chain.js";
import type { Genesis } from "../../chain/blocks/genesis.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import { findFile } from "../../config/data-dir-files.js";
import { readPeersFile } from "../../config/input-files.js";
import type { Database } from "../../db/queries/database.js";
import type { SharedSubsystem } from "../../health/subsystems.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import { createDialRateLimit } from "../../peers/handshake/dial-rate-limit.js";
import { type Dialer, maxGossipedPeers } from "../../peers/handshake/dialer.js";
import { checkHost, type EndpointPolicy, parseEndpoint } from "../../peers/address-book/endpoint.js";
import { isFromOperator } from "../../peers/address-book/peer.js";
import { createPeerBook } from "../../peers/address-book/peer-book.js";
import { peerReasons } from "../../peers/address-book/peer-reasons.js";
import { createBookSaver, loadPeers } from "../../peers/address-book/peer-store.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodePool } from "../chain/chain.js";
import { untilDatabaseResponds } from "../lifecycle/database-wait.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { Forks } from "./forks.js";
import { createPeerLog } from "./peer-log.js";
import type { NodeSnapshotSyncDeps } from "./snapshot-sync.js";

/** Parts of the node that the network uses, besides the core. */
export interface NetworkParts {
  readonly database: Database;
  readonly pool: NodePool;
  readonly chain: Chain;
  readonly genesis: Genesis | undefined;
  readonly key: NodeKey;
  readonly forks: Forks;
  readonly heads: HeadStatements;
  /** Returns true if the role and the writer lease permit this node to accept transactions. */
  readonly mayAccept: () => boolean;
  readonly chainHealth: SharedSubsystem;
  /** Dependencies of the snapshot sync; undefined on a node that never applies blocks. */
  readonly syncDeps: NodeSnapshotSyncDeps | undefined;
}

export type NodeBook = Awaited<ReturnType<typeof openBook>>;

/**
 * Opens the address book. A standby has an empty one, because another node with its key is in the network.
 *
 * @throws InputError if the peers file is invalid.
 */
export async function openBook(
  core: Pick<NodeCore, "config" | "lifecycle" | "log" | "subsystems">,
  { database, key }: Pick<NetworkParts, "database" | "key">,
) {
  const { config } = core;
  const policy: EndpointPolicy = { tls: config.omniTls, allowPrivate: config.allowPrivatePeers };
  const isHidden = config.role === "standby";
  const stored = isHidden ? [] : await untilDatabaseResponds(core, () => loadPeers(database.read));
  const file = isHidden ? undefined : findFile(config.dataDir, config.peersFile, "peers");
  const named = file === undefined ? [] : await readPeersFile(file);
  // Strangers cannot use up the lines about peers that the operator named.
  const [logNamed, logOther] = [createPeerLog(core), createPeerLog(core)];
  const book = createPeerBook({
    ownIdentity: key.publicKey,
    // The current peers file decides: an entry that was stored from it becomes an ordinary peer without a fixed key,
    // unless the file still names that peer.
    stored: stored.map((peer) =>
      peer.origin === "file" ? { ...peer, origin: "handshake", expectedIdentity: undefined } : peer,
    ),
    intervalMs: config.loopIntervalMs,
    nowMs: Date.now,
    onRejection: (peer, reason) =>
      (isFromOperator(peer) ? logNamed : logOther)(peer.endpoint, `The peer ${peer.endpoint} is rejected: ${reason}`),
  });
  for (const { url, identity } of named) {
    book.add(parseSetting(`The peers file ${file}`, url, policy), "file", identity);
  }
  return {
    book,
    /** Rules for acceptable endpoints. */
    policy,
    dialRateLimit: createDialRateLimit(config.loopIntervalMs),
    /** Stores changes of the address book, on the writer only, because another node writes the database otherwise. */
    save: config.role === "writer" ? createBookSaver(book, database) : () => Promise.resolve(),
  };
}

function parseSetting(setting: string, url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new InputError(`${setting} is invalid. ${errorMessage(error)}`);
  }
}

/**
 * Returns the normalized form of this node's own endpoint. Warns if only nodes on this machine or site can call it.
 *
 * @throws InputError if the endpoint is invalid, or if its scheme does not match --omni-tls.
 */
export function nameEndpoint({ warn }: Pick<NodeCore, "warn">, { book, policy }: NodeBook, url: string): string {
  const endpoint = parseSetting("--omni-url", url, policy);
  try {
    checkHost(endpoint, policy);
  } catch {
    if (!book.isEmpty()) {
      warn("omni", `Other machines cannot reach this node at ${endpoint}; set --public-url or --omni-url.`);
    }
  }
  return endpoint;
}

/** Returns the number of peers: known, verified, and verified peers that are online. */
export function countPeers({ book }: NodeBook) {
  const entries = book.entries();
  const verified = entries.filter(({ verifiedMs }) => verifiedMs !== undefined);
  return {
    known: entries.length,
    verified: verified.length,
    online: verified.filter(({ online }) => online).length,
  };
}

/** Creates the commands of the operator for the address book. */
export function createBookCommands(
  { addresses }: Pick<NodeCore, "addresses">,
  { book, policy, save }: NodeBook,
  { dialer, client }: { readonly dialer: Dialer; readonly client: PeerClient },
) {
  return {
    /** Adds a peer and dials it. Returns its normalized endpoint. */
    async addPeer(text: string, identity: string | undefined): Promise<string> {
      const endpoint = parseEndpoint(text, policy);
      if (identity !== undefined && !isStrongKey(identity)) {
        throw new RpcError(
          "INVALID_REQUEST",
          "The identity is not a valid node key: it has a small order, or is not canonical.",
        );
      }
      if (endpoint === addresses.omniUrl) {
        throw new RpcError("INVALID_REQUEST", peerReasons.ownAddress());
      }
      book.add(endpoint, "operator", identity);
      await dialer.dialInProgress(endpoint);
      await dialer.dial(endpoint, maxGossipedPeers);
      await save();
      return endpoint;
    },
    /** Removes a peer. Returns false if the peer is unknown. */
    async removePeer(text: string): Promise<boolean> {
      const endpoint = parseEndpoint(text, policy);
      const wasKnown = book.remove(endpoint);
      client.drop(endpoint);
      await save();
      return wasKnown;
    },
  };
}
