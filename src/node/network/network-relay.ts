/**
 * Path of transactions to the block producer: an authority retains them in its mempool, any other writer relays them.
 */
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import type { Chain } from "../../chain/chain.js";
import type { Mempool } from "../../chain/mempool/mempool.js";
import type { MempoolView } from "../../chain/blocks/store.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import type { LoopTask } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { createRelay } from "../../peers/relay/relay.js";
import type { PeerServiceDeps } from "../../peers/service.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";
import type { Followers, MayFollow } from "./followers.js";
import type { TaskErrors } from "./network-loop.js";
import type { SourceOf } from "./transaction-sources.js";

/** Dependencies of the relay besides the core. */
export interface NodeRelayDeps {
  readonly statusOf: MempoolView["transactionStatus"];
  /**
   * Returns the reason to reject all transactions, for example because no node could put them into a block; undefined
   * if there is none.
   */
  readonly whyRefused: () => string | undefined;
  /** Mempool; undefined on a node that does not write. */
  readonly mempool: Mempool | undefined;
  readonly chain: Chain;
  /** Returns the source of a transaction, by which the mempool applies quotas and rates. */
  readonly sourceOf: SourceOf;
  readonly book: PeerBook;
  readonly client: PeerClient;
  readonly authorities: readonly string[];
  readonly mayFollow: MayFollow;
  readonly followers: Followers;
  /** True if this node relays transactions: it is a writer, but no authority. */
  readonly isRelaying: boolean;
  /** Returns true if an external process produces blocks. */
  readonly hasConsensus: () => boolean;
  readonly onTaskError: TaskErrors;
}

/** Relay of a node. */
export interface NodeRelay {
  /**
   * Rejects a transaction of this size and source before its body is read, if it would be rejected anyway.
   *
   * @throws RpcError
   */
  readonly precheck: (bytes: number, address: string) => void;
  /**
   * Adds a transaction from this address to the mempool. Relays the transaction if other nodes produce the blocks.
   * Returns the hash.
   */
  readonly submit: (transaction: Transaction, address: string) => Promise<string>;
  /** Submits a transaction that a peer relays, as {@link submit} does. Returns the status of a known transaction. */
  readonly acceptTransaction: PeerServiceDeps["acceptTransaction"];
  /** Tasks for the main loop. */
  readonly tasks: readonly LoopTask[];
  start(): void;
  stop(): Promise<void>;
}

/** Number of main loop ticks without a relay target after which the relay counts as failed. */
const ticksWithoutRelay = 3;

export function createNodeRelay({ subsystems }: Pick<NodeCore, "subsystems">, deps: NodeRelayDeps): NodeRelay {
  const noTarget = describeNoTarget(deps);
  const { mempool, chain, book, client, authorities, mayFollow, hasConsensus, sourceOf, onTaskError } = deps;
  const isRelaying = deps.isRelaying && mempool !== undefined;
  const relay = createRelay({
    mempool: {
      toRelay: (...limits) => mempool!.toRelay(...limits),
      markRelayed: (...relayed) => mempool!.markRelayed(...relayed),
      defer: (...deferred) => mempool!.defer(...deferred),
      reject: (rejected) => mempool!.remove([], rejected),
    },
    book,
    authorities,
    mayFollow,
    async send(endpoint, waiting) {
      const request = {
        transactions: waiting.map(({ transaction }) => transaction),
        orders: waiting.map(({ afterNonce }) => ({ afterNonce })),
      };
      return (await client.call(endpoint, PeerService.method.relayTransactions, request)).outcomes;
    },
    monotonicMs: () => performance.now(),
    onError: (error) => onTaskError("relay", error),
  });

  let idleTicks = 0;
  function relayPending(): void {
    idleTicks = relay.isPossible() ? 0 : idleTicks + 1;
    if (relay.isPossible()) {
      subsystems.set("dtr", { status: SubsystemStatus.READY });
      relay.kick();
    } else if (idleTicks === ticksWithoutRelay) {
      subsystems.set("dtr", { status: SubsystemStatus.FAILED, error: { message: noTarget, source: "dtr" } });
    }
  }

  /** Submits a transaction. An authority does not relay it, because the authority itself produces the blocks. */
  async function submit(transaction: Transaction, address: string, afterNonce?: bigint): Promise<string> {
    const rejection = deps.whyRefused();
    if (rejection !== undefined) {
      throw new RpcError("STATE_NOT_READY", rejection);
    }
    if (isRelaying && chain.head() !== undefined && !relay.isPossible() && !hasConsensus()) {
      throw new RpcError("RELAY_UNAVAILABLE", `${noTarget} Submit the transaction to another node.`, 5);
    }
    const hash = await chain.submit(transaction, { source: sourceOf(address), afterNonce });
    if (isRelaying) {
      relay.kick();
    }
    return hash;
  }

  return {
    precheck: (bytes, address) => chain.precheck(bytes, { source: sourceOf(address) }),
    submit: (transaction, address) => submit(transaction, address),
    async acceptTransaction(transaction, address, afterNonce) {
      const hash = sha256(transaction.body);
      const info = await deps.statusOf(hash);
      if (info === undefined) {
        await submit(transaction, address, afterNonce);
        return { status: "pending" };
      }
      mempool?.lowerAfterNonce(hash, afterNonce);
      return info.status === "included" ? { status: "included" } : info;
    },
    tasks: isRelaying ? [{ name: "relay", run: relayPending }] : [],
    start() {
      if (isRelaying) {
        subsystems.set("dtr", { status: SubsystemStatus.RUNNING });
      }
    },
    stop: () => relay.stop(),
  };
}

function describeNoTarget({ followers }: Pick<NodeRelayDeps, "followers">): string {
  const condition = followers === "listed" ? ", of those that may follow" : "";
  return `No verified peer is online to relay transactions to${condition}.`;
}
