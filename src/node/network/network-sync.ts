/** Keeps a node in sync with its peers: presents this node to them, dials them, and downloads and announces blocks. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { NodeKey } from "../../base/crypto/node-key.js";
import { sha256 } from "../../base/crypto/hash.js";
import { createLruCache } from "../../base/caches/lru-cache.js";
import { version } from "../../base/version.js";
import type { SignedBytes } from "../../chain/blocks/evidence.js";
import { verifyHeader } from "../../chain/transactions/transaction.js";
import { createPeerClient, type PeerClient } from "../../peers/handshake/client.js";
import { createAnnounce, createDialer, maxGossipedPeers } from "../../peers/handshake/dialer.js";
import { resolveEndpoint } from "../../peers/address-book/endpoint.js";
import { addressPrefixOf } from "../../base/ip-address.js";
import type { LoopTask } from "../../peers/sync/main-loop.js";
import type { Self } from "../../peers/handshake/handshake.js";
import { isFromOperator, provenIdentity } from "../../peers/address-book/peer.js";
import { createStatusReader, maxEvidence } from "../../peers/address-book/status.js";
import { createSync } from "../../peers/sync/sync.js";
import { createGrpcClient } from "../../rpc/grpc/grpc-client.js";
import type { NodeCore } from "../lifecycle/core.js";
import { createNodeSnapshotSync } from "./snapshot-sync.js";
import type { NetworkParts, NodeBook } from "./network-book.js";
import type { TaskErrors } from "./network-loop.js";

/** Deadline in milliseconds of a call to a peer. */
export const peerDeadlineMs = 2_000;
/** Limit in milliseconds on the wait for a sync before this node responds to a peer that reported a new block. */
const catchUpWithinMs = 1_000;
/** Limit on endpoints for which the location is cached; more than the address book holds. */
const maxSites = 4_096;
/** Limit on peers that are queried in one tick. Further peers follow in later ticks. */
const maxPolledPerTick = 100;

/**
 * Creates a client that calls peers at the addresses that the policy permits. Peers that the operator named may have
 * private addresses.
 */
export function connectPeers(
  { config, onShutdown }: Pick<NodeCore, "config" | "onShutdown">,
  key: NodeKey,
  { book, policy, dialRateLimit }: NodeBook,
) {
  const sites = createLruCache<string>(maxSites);
  const client = createPeerClient({
    openChannel: createGrpcClient(config.omniTls ? key.tlsCredentials() : undefined),
    deadlineMs: peerDeadlineMs,
    expectedIdentity: (endpoint) => provenIdentity(book.get(endpoint)),
    async resolve(endpoint) {
      const entry = book.get(endpoint);
      const isTrusted = entry !== undefined && isFromOperator(entry);
      const address = await resolveEndpoint(endpoint, isTrusted ? { ...policy, allowPrivate: true } : policy);
      sites.set(endpoint, addressPrefixOf(address.ip));
      if (!isTrusted) {
        dialRateLimit.countConnection(address.ip, entry?.verifiedMs !== undefined);
      }
      return address;
    },
  });
  onShutdown("the calls to peers", () => client.close());
  /** Returns the location of a peer: an IPv4 address or an IPv6 /64 prefix. */
  const siteOf = (endpoint: string): string => sites.get(endpoint) ?? endpoint;
  return { client, siteOf };
}

/** Parts of the network on which the sync depends. */
interface NodeSyncDeps extends NodeBook {
  readonly client: PeerClient;
  readonly isAccepting: () => boolean;
  readonly onKeyElsewhere: (endpoint: string) => void;
  readonly onTaskError: TaskErrors;
}

export function createNodeSync(
  core: Pick<NodeCore, "addresses" | "bus" | "config" | "log" | "memory">,
  parts: NetworkParts,
  { book, policy, dialRateLimit, client, isAccepting, onKeyElsewhere, onTaskError }: NodeSyncDeps,
) {
  const { config, bus, log } = core;
  const { chain, genesis, forks, heads, syncDeps } = parts;
  const self = describeSelf(core, parts, isAccepting);

  /**
   * Decodes a header from a peer.
   *
   * @throws RpcError if the proposer has not signed the header.
   */
  function receiveHeader({ header, signature }: SignedBytes) {
    const { number, proposer } = verifyHeader({ header, signature }, { network: genesis?.hash ?? "" });
    forks.headers.addReceived({ number, proposer, hash: sha256(header), header, signature });
    return { number, proposer };
  }

  const readStatus = createStatusReader({
    verifyHeader: receiveHeader,
    receiveSignedHead: (signed, from) => heads.receive(signed, from),
    authorities: genesis?.authorities ?? [],
    genesisHash: genesis?.hash ?? "",
  });
  const dialer = createDialer({
    ...{ self, book, client, policy, dialRateLimit, readStatus, nowMs: Date.now, onKeyElsewhere },
    onVerified(endpoint) {
      log.info({ subsystem: "omni", endpoint }, `The peer ${book.get(endpoint)?.identity} is verified at ${endpoint}`);
      bus.emit("peerVerified", { endpoint });
    },
    onError: (error) => onTaskError("peers", error),
  });
  const announce = createAnnounce(book, dialer, () => {
    const { number = 0n, hash = "" } = chain.head() ?? {};
    return { number, statedMs: heads.latestMs(hash) };
  });
  const sync = createSync({
    ...{ self, book, onEnd: announce },
    chain: { head: () => chain.head()?.number, apply: (block) => chain.apply(block), receive: receiveHeader },
    blocks: (endpoint, fromNumber, signal) =>
      client.stream(endpoint, ChainService.method.listBlocks, { fromNumber }, signal),
    // Monotonic, because changes of the system time must not affect the block rate.
    nowMs: () => performance.now(),
    onError: (error) => onTaskError("sync", error),
    onPeerDropped: (endpoint, reason) =>
      log.warn({ subsystem: "main_loop", endpoint }, `Dropped the peer ${endpoint}: ${reason}`),
  });

  const snapshotSync =
    syncDeps &&
    createNodeSnapshotSync(core, syncDeps, {
      ...{ book, client, onError: (error) => onTaskError("snapshot", error) },
      onEnd: () => keepUp(),
    });

  /** Starts a sync if needed. Does nothing unless this node is the writer, because the writer advances the chain. */
  function keepUp(): void {
    if (config.role !== "writer") {
      return;
    }
    if (snapshotSync?.isRequired() === true) {
      snapshotSync.kick();
    } else {
      sync.kick();
    }
  }

  async function pollPeers(): Promise<void> {
    const due = book.due(maxPolledPerTick);
    const notified = due[Math.floor(Math.random() * due.length)];
    await Promise.all(due.map((endpoint) => dialer.dial(endpoint, endpoint === notified ? maxGossipedPeers : 0)));
    keepUp();
  }

  bus.on("peerVerified", keepUp);
  const announceUnlessBusy = (): void => (sync.isActive() ? undefined : announce());
  bus.on("blockApplied", announceUnlessBusy);
  bus.on("headStated", announceUnlessBusy);

  const tasks: readonly LoopTask[] = [
    { name: "peers", run: pollPeers },
    { name: "sync", run: keepUp },
    { name: "evidence", run: () => forks.save() },
  ];

  return {
    ...{ self, readStatus, dialer, sync, snapshotSync, tasks },
    /**
     * Called when a peer has reported its latest block. Starts a sync if needed, and waits up to 1 s until that sync is
     * finished. Does not wait for a sync that was in progress before.
     */
    async onStatus(): Promise<void> {
      const wasActive = sync.isActive();
      keepUp();
      if (!wasActive && sync.isActive()) {
        await Promise.race([sync.settled(), sleep(catchUpWithinMs, undefined, { ref: false })]);
      }
    },
  };
}

/** Returns the description of this node that its peers receive. */
function describeSelf(
  { addresses }: Pick<NodeCore, "addresses">,
  { key, genesis, chain, forks, heads }: NetworkParts,
  isAccepting: () => boolean,
): Self {
  return {
    ...{ key, genesisHash: genesis?.hash, version, instanceId: randomBytes(16) },
    connectionString: () => addresses.connectionString,
    endpoint: () => addresses.omniUrl,
    status() {
      const head = chain.head();
      const evidence = forks.evidence().map(({ headers: [one, other] }) => ({
        ...{ header: one.header, signature: one.signature },
        ...{ otherHeader: other.header, otherSignature: other.signature },
      }));
      return {
        ...{ headHeader: head?.header, headSignature: head?.signature, accepting: isAccepting() },
        ...{ lowestBlock: head?.lowestBlock ?? 1n, timeMs: BigInt(Date.now()) },
        evidence: evidence.slice(0, maxEvidence),
        signedHead: head && heads.latestSignedHead(head.hash),
      };
    },
  };
}
