/**
 * Path of transactions to the block producer: an authority retains them in its mempool, any other writer relays them.
 */
import { isIP } from "node:net";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { SubsystemStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { addressPrefixOf } from "../../base/ip-address.js";
import { createAddressSet } from "../../edge/client-address.js";
import type { PeerClient } from "../../peers/handshake/client.js";
import type { LoopTask } from "../../peers/sync/main-loop.js";
import type { PeerBook } from "../../peers/address-book/peer-book.js";
import { createRelay, type RelayDeps } from "../../peers/relay/relay.js";
import type { RelayReceiverDeps } from "../../peers/relay/relay-receiver.js";
import { RpcError } from "../../rpc/errors.js";
import type { NodeCore } from "../lifecycle/core.js";
import { followersOf } from "./followers.js";
import type { NetworkParts } from "./network-book.js";
import type { TaskErrors } from "./network-loop.js";

/** Parts of the network on which the relay depends. */
interface NodeRelayDeps extends Pick<RelayDeps, "authorities" | "mayFollow"> {
  readonly book: PeerBook;
  readonly client: PeerClient;
  /**
   * Returns the reason to reject all transactions, for example because no node could put them into a block; undefined
   * if there is none.
   */
  readonly whyRefused: () => string | undefined;
  /** True if this node relays transactions: it is a writer, but no authority. */
  readonly isRelaying: boolean;
  /** Returns true if an external process produces blocks. */
  readonly hasConsensus: () => boolean;
  readonly onTaskError: TaskErrors;
}

/** Number of main loop ticks without a relay target after which the relay counts as failed. */
const ticksWithoutRelay = 3;

export function createNodeRelay(
  { config, subsystems }: Pick<NodeCore, "config" | "subsystems">,
  { pool, chain, genesis }: Pick<NetworkParts, "chain" | "genesis" | "pool">,
  deps: NodeRelayDeps,
) {
  const { book, client, authorities, mayFollow, hasConsensus, onTaskError } = deps;
  const { mempool } = pool;
  const condition = followersOf(config, genesis) === "listed" ? ", of those that may follow" : "";
  const noTarget = `No verified peer is online to relay transactions to${condition}.`;
  const isExempt = createAddressSet(config.rateLimitExempt);
  const relay =
    deps.isRelaying && mempool !== undefined
      ? createRelay({
          ...{ mempool, book, authorities, mayFollow },
          async send(endpoint, waiting) {
            const request = {
              transactions: waiting.map(({ transaction }) => transaction),
              orders: waiting.map(({ afterNonce }) => ({ afterNonce })),
            };
            return (await client.call(endpoint, PeerService.method.relayTransactions, request)).outcomes;
          },
          monotonicMs: () => performance.now(),
          onError: (error) => onTaskError("relay", error),
        })
      : undefined;

  let idleTicks = 0;
  function relayPending(): void {
    if (relay?.isPossible() === true) {
      idleTicks = 0;
      subsystems.set("dtr", { status: SubsystemStatus.READY });
      relay.kick();
    } else if (++idleTicks === ticksWithoutRelay) {
      subsystems.set("dtr", { status: SubsystemStatus.FAILED, error: { message: noTarget, source: "dtr" } });
    }
  }

  /**
   * Returns the source of transactions from an address, to which the mempool applies quotas and rates. Addresses that
   * are exempt from the request rate limit are exempt here too, and so are clients without an IP address.
   */
  const sourceOf = (address: string) => ({
    address: addressPrefixOf(address),
    isExempt: isIP(address) === 0 || isExempt(address),
  });

  /**
   * Adds a transaction from this address to the mempool. Relays the transaction if other nodes produce the blocks.
   * Returns the hash.
   */
  async function submit(transaction: Transaction, address: string, afterNonce?: bigint): Promise<string> {
    const rejection = deps.whyRefused();
    if (rejection !== undefined) {
      throw new RpcError("STATE_NOT_READY", rejection);
    }
    if (relay?.isPossible() === false && chain.head() !== undefined && !hasConsensus()) {
      throw new RpcError("RELAY_UNAVAILABLE", `${noTarget} Submit the transaction to another node.`, 5);
    }
    const hash = await chain.submit(transaction, { source: sourceOf(address), afterNonce });
    relay?.kick();
    return hash;
  }

  const acceptTransaction: RelayReceiverDeps["acceptTransaction"] = async (transaction, address, afterNonce) => {
    const hash = sha256(transaction.body);
    const info = await pool.view.transactionStatus(hash);
    if (info === undefined) {
      await submit(transaction, address, afterNonce);
      return { status: "pending" };
    }
    mempool?.lowerAfterNonce(hash, afterNonce);
    return info.status === "included" ? { status: "included" } : info;
  };

  return {
    /**
     * Rejects a transaction of this size and source before its body is read, if it would be rejected anyway.
     *
     * @throws RpcError
     */
    precheck: (bytes: number, address: string) => chain.precheck(bytes, { source: sourceOf(address) }),
    submit: (transaction: Transaction, address: string) => submit(transaction, address),
    acceptTransaction,
    /** Tasks for the main loop. */
    tasks: (relay === undefined ? [] : [{ name: "relay", run: relayPending }]) satisfies LoopTask[],
    start(): void {
      if (relay !== undefined) {
        subsystems.set("dtr", { status: SubsystemStatus.RUNNING });
      }
    },
    stop: async () => await relay?.stop(),
  };
}
