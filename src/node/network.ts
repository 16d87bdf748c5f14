/**
 * The part of the composition root that is about other nodes: whom the node knows, how it keeps up with their chain, and
 * how transactions get to where blocks are made.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { PeerService } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { Chain } from "../chain/chain.js";
import type { Genesis } from "../chain/genesis.js";
import type { ChainStore } from "../chain/store.js";
import { readHeader } from "../chain/transaction.js";
import type { Database } from "../db/database.js";
import { Failure } from "../rpc/errors.js";
import { createGrpcClient } from "../rpc/grpc/grpc-client.js";
import { sha256 } from "../base/hash.js";
import { messageOf } from "../base/message-of.js";
import type { NodeKey } from "../base/node-key.js";
import type { NodeCore } from "./core.js";
import { createAnnounce } from "../peers/announce.js";
import { createChallenges } from "../peers/challenges.js";
import { createPeerClient } from "../peers/client.js";
import { createDialer } from "../peers/dialer.js";
import { checkHost, type EndpointPolicy, parseEndpoint, resolveEndpoint } from "../peers/endpoint.js";
import { createMainLoop, type MainLoop } from "../peers/main-loop.js";
import type { Self } from "../peers/node-info.js";
import { isOperators, provenIdentity } from "../peers/peer.js";
import { createPeerBook, type PeerBook } from "../peers/peer-book.js";
import { createBookSaver, createPeerStore } from "../peers/peer-store.js";
import { readPeersFile } from "../config/peers-file.js";
import { createRelay } from "../peers/relay.js";
import type { RelayFate } from "../peers/relay-receiver.js";
import { createPeerService, type PeerServiceParts } from "../peers/service.js";
import { createStatusReader } from "../peers/status.js";
import { createSync, type SyncProgress } from "../peers/sync.js";
import { repeat } from "../base/repeat.js";
import { StartError } from "../base/start-error.js";
import { version } from "../base/version.js";

/** How long a peer may take to answer a call. */
const peerDeadlineMs = 2_000;
/** How long a peer may take for the next block. */
const stallMs = 10_000;
/** How long a peer that told of a new block waits for word that it has arrived. */
const catchUpWithinMs = 1_000;
/** Most peers that are asked in one tick; of more, each has its turn. */
const maxAskedPerTick = 100;
/** How many peers one peer is asked for in each tick. */
const peersWanted = 50;
/** Ticks without anybody to hand transactions to before that is a failure. */
const ticksWithoutRelay = 3;
const progressEveryMs = 1_000;
const progressLineEveryMs = 10_000;

/** What the network of a node is made of, beside the core. */
export interface NodeNetworkParts {
  readonly database: Database;
  readonly store: ChainStore;
  readonly chain: Chain;
  readonly genesis: Genesis | undefined;
  readonly key: NodeKey;
}

/** The network of a node. */
export interface NodeNetwork {
  readonly book: PeerBook;
  readonly mainLoop: MainLoop;
  /** Serves other nodes. */
  readonly service: ReturnType<typeof createPeerService>;
  /** It is at the head of its verified peers, and not on its way there. */
  readonly isSynced: () => boolean;
  /** It is booted, synced and alive, and was not told to stop. */
  readonly isAccepting: () => boolean;
  /** Puts a transaction into the mempool, and relays it where others make the blocks. */
  readonly submit: (transaction: Transaction) => Promise<string>;
  /** Begins the loop, and whatever goes with it. */
  start(): void;
  /**
   * The one form of this node's own endpoint. Warns when only nodes on this machine or site can call it.
   *
   * @throws StartError when nobody can.
   */
  nameEndpoint(url: string): string;
  /** Adds a peer and asks it. */
  addPeer(endpoint: string, identity: string | undefined): Promise<string>;
  removePeer(endpoint: string): Promise<boolean>;
  /** Number of the newest block of the verified peers; undefined while there is none. */
  peerBlock(): bigint | undefined;
  /** How many peers there are: known, verified, and of those online. */
  countPeers(): { readonly known: number; readonly verified: number; readonly online: number };
  /** How far it is, while it catches up. */
  syncProgress(): SyncProgress | undefined;
}

/** Builds the network; it does nothing before it is started. */
export async function createNodeNetwork(core: NodeCore, parts: NodeNetworkParts): Promise<NodeNetwork> {
  const { config, subsystems, log, bus, lifecycle, addresses, onStop } = core;
  const { store, chain, genesis, key } = parts;
  const policy: EndpointPolicy = { tls: config.omniTls, allowPrivate: config.allowPrivatePeers };
  const peerStore = createPeerStore(parts.database);
  const book = createPeerBook({
    ownIdentity: key.publicKey,
    // Those of the file are what the file says today.
    stored: (await peerStore.load()).map((peer) => (peer.origin === "file" ? { ...peer, origin: "handshake" } : peer)),
    intervalMs: config.loopIntervalMs,
    nowMs: Date.now,
  });
  for (const { url, identity } of config.peersFile === undefined ? [] : await readPeersFile(config.peersFile)) {
    book.add(parseFileEntry(url, policy), "file", identity);
  }
  const isWriter = config.role === "writer";
  const isAuthority = genesis?.authorities.includes(key.publicKey) ?? false;
  const isSoleAuthority = isAuthority && genesis?.authorities.length === 1;
  const isRelaying = isWriter && !isAuthority;

  const client = createPeerClient({
    openChannel: createGrpcClient(config.omniTls ? key.tlsCredentials() : undefined),
    deadlineMs: peerDeadlineMs,
    expectedIdentity: (endpoint) => provenIdentity(book.get(endpoint)),
    resolve(endpoint) {
      const entry = book.get(endpoint);
      const isTrusted = entry !== undefined && isOperators(entry);
      return resolveEndpoint(endpoint, isTrusted ? { ...policy, allowPrivate: true } : policy);
    },
  });
  onStop("the calls to peers", () => client.close());

  const self: Self = {
    key,
    genesisHash: genesis?.hash,
    version,
    connectionString: () => addresses.connectionString,
    endpoint: () => addresses.omniUrl,
    status: () => {
      const head = chain.head();
      return { headHeader: head?.header, headSignature: head?.signature, accepting: isAccepting() };
    },
  };
  const readStatus = createStatusReader({
    readHeader,
    authorities: genesis?.authorities ?? [],
    genesisHash: genesis?.hash ?? "",
  });
  const dialer = createDialer({
    self,
    book,
    client,
    policy,
    readStatus,
    nowMs: Date.now,
    onVerified(endpoint) {
      log.info({ subsystem: "omni", endpoint }, `The peer ${book.get(endpoint)?.identity} is verified at ${endpoint}`);
      keepUp();
      bus.emit("peerVerified", { endpoint });
    },
    onError: (error) => onTaskError("peers", error),
  });
  const announce = createAnnounce({ book, dialer, head: () => chain.head()?.number ?? 0n });

  let taskErrors = 0n;
  const onTaskError = (task: string, error: unknown): void => {
    taskErrors++;
    log.error({ subsystem: "main_loop", task, err: error }, `Task ${task} failed`);
    const message = `Task ${task}: ${messageOf(error)}`;
    subsystems.set("main_loop", { error: { message, source: task }, extra: { taskErrors } });
  };
  const sync = createSync({
    book,
    chain: { head: () => chain.head()?.number, apply: (block) => chain.apply(block) },
    blocks: (endpoint, fromNumber, signal) => client.blocks(endpoint, fromNumber, signal),
    stallMs,
    nowMs: Date.now,
    onError: (error) => onTaskError("sync", error),
    onEnd: announce,
    onLeft: (endpoint, reason) =>
      log.warn({ subsystem: "main_loop", endpoint }, `Left the peer ${endpoint}: ${reason}`),
  });
  const relay = createRelay({
    mempool: {
      pendingToRelay: (...given) => store.pendingToRelay(...given),
      pendingSince: (...given) => store.pendingSince(...given),
      markRelayed: (...given) => store.markRelayed(...given),
      reject: (hash, reason) => store.write((changes) => changes.reject(hash, reason, Date.now())),
    },
    book,
    authorities: genesis?.authorities ?? [],
    async send(endpoint, transactions) {
      const request = { transactions: [...transactions] };
      return (await client.call(endpoint, PeerService.method.relayTransactions, request)).outcomes;
    },
    nowMs: Date.now,
    onError: (error) => onTaskError("relay", error),
  });

  /** The chain of a reader is brought forward by another node. */
  function keepUp(): void {
    if (isWriter) {
      sync.kick();
    }
  }

  const save = createBookSaver(book, peerStore);
  const mainLoop = createMainLoop({
    intervalMs: config.loopIntervalMs,
    tickDeadlineMs: 2 * peerDeadlineMs,
    tasks: [
      { name: "peers", run: askPeers },
      { name: "sync", run: keepUp },
      ...(isRelaying ? [{ name: "relay", run: relayPending }] : []),
      ...(isWriter ? [{ name: "address book", run: save }] : []),
    ],
    nowMs: Date.now,
    onTaskError,
    onLife(death) {
      if (death === undefined) {
        subsystems.set("main_loop", { status: SubsystemStatus.READY });
      } else if (!lifecycle.isStopping()) {
        subsystems.set("main_loop", { status: SubsystemStatus.FAILED, error: { message: death, source: "main_loop" } });
      }
    },
  });

  async function askPeers(): Promise<void> {
    const due = book.due(maxAskedPerTick);
    const told = due[Math.floor(Math.random() * due.length)];
    await Promise.all(due.map((endpoint) => dialer.dial(endpoint, endpoint === told ? peersWanted : 0)));
    keepUp();
  }

  let idleTicks = 0;
  function relayPending(): void {
    idleTicks = relay.isPossible() ? 0 : idleTicks + 1;
    if (relay.isPossible()) {
      subsystems.set("dtr", { status: SubsystemStatus.READY });
      relay.kick();
    } else if (idleTicks === ticksWithoutRelay) {
      subsystems.set("dtr", { status: SubsystemStatus.FAILED, error: { message: nobodyToRelayTo, source: "dtr" } });
    }
  }

  /** An authority hands nothing on: what it has is where it belongs. */
  async function submit(transaction: Transaction): Promise<string> {
    if (isRelaying && chain.head() !== undefined && !relay.isPossible() && !hasConsensus) {
      throw new Failure("RELAY_UNAVAILABLE", `${nobodyToRelayTo} Submit the transaction to another node.`, 5);
    }
    const hash = await chain.submit(transaction);
    if (isRelaying) {
      relay.kick();
    }
    return hash;
  }

  const takeTransaction: PeerServiceParts["takeTransaction"] = async (transaction) => {
    const known = await fateOf(sha256(transaction.body));
    if (known === undefined) {
      await submit(transaction);
    }
    return known ?? { status: "pending" };
  };

  async function fateOf(hash: string): Promise<RelayFate | undefined> {
    const fate = await store.fate(hash);
    return fate?.status === "included" ? { status: "included" } : fate;
  }

  function start(): void {
    mainLoop.start();
    if (isRelaying) {
      subsystems.set("dtr", { status: SubsystemStatus.RUNNING });
    }
    let linedMs = 0;
    const progress = repeat(
      () => {
        const state = sync.progress();
        subsystems.set("main_loop", { extra: { sync: state } });
        if (state !== undefined && Date.now() - linedMs >= progressLineEveryMs) {
          linedMs = Date.now();
          log.info({ subsystem: "main_loop", public: true }, progressLine(state));
        }
        return Promise.resolve();
      },
      progressEveryMs,
      (error) => onTaskError("progress", error),
    );
    onStop("the main loop", async () => {
      await Promise.all([progress.stop(), sync.stop(), relay.stop()]);
      await mainLoop.stop("The node is shutting down.");
      if (isWriter) {
        await save().catch((error: unknown) => log.warn({ err: error }, "The address book could not be saved"));
      }
    });
  }

  function isSynced(): boolean {
    const number = chain.head()?.number;
    const target = book.highestBlock();
    const hasAsked = mainLoop.heartbeat().iterationsTotal > 0n || book.isEmpty();
    if (number === undefined || sync.isActive() || !hasAsked) {
      return false;
    }
    return target === undefined ? isSoleAuthority || hasConsensus : number >= target;
  }

  function isAccepting(): boolean {
    return core.progress.state().complete && !lifecycle.isStopping() && isSynced() && !mainLoop.isDead();
  }

  bus.on("blockApplied", () => {
    if (!sync.isActive()) {
      announce();
    }
  });
  /** A process beside this one brings the blocks, and says that all is well with it. */
  let hasConsensus = false;
  bus.on("consensusReported", ({ isReady }) => {
    hasConsensus = isReady;
  });

  return {
    book,
    mainLoop,
    service: createPeerService({
      self,
      book,
      dialer,
      policy,
      challenges: createChallenges(Date.now),
      readStatus,
      takeTransaction,
      onError: (error) => onTaskError("relay", error),
      async onStatus() {
        const wasActive = sync.isActive();
        keepUp();
        if (!wasActive && sync.isActive()) {
          await Promise.race([sync.settled(), sleep(catchUpWithinMs, undefined, { ref: false })]);
        }
      },
    }),
    isSynced,
    isAccepting,
    submit,
    start,
    nameEndpoint(url) {
      const endpoint = parseOwnEndpoint(url, policy);
      try {
        checkHost(endpoint, policy);
      } catch {
        if (!book.isEmpty()) {
          core.warn("omni", `Other machines cannot reach this node at ${endpoint}; name --public-url or --omni-url.`);
        }
      }
      return endpoint;
    },
    async addPeer(text, identity) {
      const endpoint = parseEndpoint(text, policy);
      if (endpoint === addresses.omniUrl) {
        throw new Failure("INVALID_REQUEST", "It is this node itself.");
      }
      book.add(endpoint, "operator", identity);
      await dialer.underWay(endpoint);
      await dialer.dial(endpoint, peersWanted);
      await (isWriter ? save() : undefined);
      return endpoint;
    },
    async removePeer(text) {
      const endpoint = parseEndpoint(text, policy);
      const isForgotten = book.forget(endpoint);
      client.drop(endpoint);
      await (isWriter ? save() : undefined);
      return isForgotten;
    },
    peerBlock: () => book.highestBlock(),
    countPeers() {
      const entries = book.entries();
      const verified = entries.filter(({ verifiedMs }) => verifiedMs !== undefined);
      return {
        known: entries.length,
        verified: verified.length,
        online: verified.filter(({ online }) => online).length,
      };
    },
    syncProgress: () => sync.progress(),
  };
}

const nobodyToRelayTo = "No verified peer is online to relay transactions to.";

function parseFileEntry(url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new Error(`The peers file cannot be used. ${messageOf(error)}`);
  }
}

function parseOwnEndpoint(url: string, policy: EndpointPolicy): string {
  try {
    return parseEndpoint(url, policy);
  } catch (error) {
    throw new StartError(`--omni-url cannot be used. ${messageOf(error)}`);
  }
}

function progressLine({ block, targetBlock, blocksPerS, leftS }: SyncProgress): string {
  const left = leftS === undefined ? "" : `, ${Math.ceil(leftS)} s left`;
  return `Catching up: block ${block} of ${targetBlock}, ${blocksPerS}/s${left}`;
}
