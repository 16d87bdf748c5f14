/** How transactions get to where blocks are made: relayed by a node that is no authority, kept by one that is. */
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
import type { OriginOf } from "./origins.js";

/** What it is made of beside the core. */
export interface NodeRelayDeps {
  readonly fate: MempoolView["fate"];
  /** Why no transaction is taken: nobody would ever put it into a block. */
  readonly whyRefused: () => string | undefined;
  /** Undefined where nothing is written. */
  readonly mempool: Mempool | undefined;
  readonly chain: Chain;
  /** What an address is to shares and rates. */
  readonly originOf: OriginOf;
  readonly book: PeerBook;
  readonly client: PeerClient;
  readonly authorities: readonly string[];
  readonly mayFollow: MayFollow;
  readonly followers: Followers;
  /** This node relays: it is a writer, and no authority. */
  readonly isRelaying: boolean;
  /** A process beside this one makes blocks. */
  readonly hasConsensus: () => boolean;
  readonly onTaskError: TaskErrors;
}

/** The way of transactions. */
export interface NodeRelay {
  /** Refuses what would be refused, of so many bytes and this address, before it is read. Throws a Failure. */
  readonly announce: (bytes: number, address: string) => void;
  /** Puts a transaction of this address into the mempool, and relays it where others make the blocks. */
  readonly submit: (transaction: Transaction, address: string) => Promise<string>;
  /** {@link submit} for one that a peer relays; what became of it if it is known already. */
  readonly takeTransaction: PeerServiceDeps["takeTransaction"];
  /** What the main loop does for it. */
  readonly tasks: readonly LoopTask[];
  start(): void;
  stop(): Promise<void>;
}

/** Ticks without anybody to relay transactions to before that is a failure. */
const ticksWithoutRelay = 3;

export function createNodeRelay({ subsystems }: NodeCore, deps: NodeRelayDeps): NodeRelay {
  const nobodyToRelayTo = describeNobody(deps);
  const { mempool, chain, book, client, authorities, mayFollow, hasConsensus, originOf, onTaskError } = deps;
  const isRelaying = deps.isRelaying && mempool !== undefined;
  const relay = createRelay({
    mempool: {
      toRelay: (...given) => mempool!.toRelay(...given),
      markRelayed: (...given) => mempool!.markRelayed(...given),
      defer: (...given) => mempool!.defer(...given),
      reject: (rejected) => mempool!.settle([], rejected),
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
      subsystems.set("dtr", { status: SubsystemStatus.FAILED, error: { message: nobodyToRelayTo, source: "dtr" } });
    }
  }

  /** An authority relays nothing: what it has is where it belongs. */
  async function submit(transaction: Transaction, address: string, afterNonce?: bigint): Promise<string> {
    const refusal = deps.whyRefused();
    if (refusal !== undefined) {
      throw new RpcError("STATE_NOT_READY", refusal);
    }
    if (isRelaying && chain.head() !== undefined && !relay.isPossible() && !hasConsensus()) {
      throw new RpcError("RELAY_UNAVAILABLE", `${nobodyToRelayTo} Submit the transaction to another node.`, 5);
    }
    const hash = await chain.submit(transaction, { origin: originOf(address), afterNonce });
    if (isRelaying) {
      relay.kick();
    }
    return hash;
  }

  return {
    announce: (bytes, address) => chain.announce(bytes, { origin: originOf(address) }),
    submit: (transaction, address) => submit(transaction, address),
    async takeTransaction(transaction, address, afterNonce) {
      const hash = sha256(transaction.body);
      const fate = await deps.fate(hash);
      if (fate === undefined) {
        await submit(transaction, address, afterNonce);
        return { status: "pending" };
      }
      mempool?.loosen(hash, afterNonce);
      return fate.status === "included" ? { status: "included" } : fate;
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

function describeNobody({ followers }: Pick<NodeRelayDeps, "followers">): string {
  const whom = followers === "listed" ? ", of those that may follow" : "";
  return `No verified peer is online to relay transactions to${whom}.`;
}
