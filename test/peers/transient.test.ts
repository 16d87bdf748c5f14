/** The reaction to an error of a peer depends on its reason: transient errors have no consequences. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { BlockSchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { BookEntry } from "../../src/peers/address-book/peer.js";
import { createPeerService, type PeerServiceDeps } from "../../src/peers/service.js";
import { createSync } from "../../src/peers/sync/sync.js";
import { errorCatalog, RpcError, type Reason } from "../../src/rpc/errors.js";
import { RelayTransactionsRequestSchema } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import type { Call } from "../../src/rpc/service.js";

const reasons = Object.keys(errorCatalog) as Reason[];

test("a relayed transaction is rejected permanently unless the reason is transient", async (t) => {
  const statuses = new Set<TransactionStatus | undefined>();
  for (const reason of reasons) {
    const service = createPeerService({
      acceptTransaction: () => Promise.reject(new RpcError(reason, "Not now.")),
    } as Partial<PeerServiceDeps> as PeerServiceDeps);
    const response = await service.relayTransactions(
      create(RelayTransactionsRequestSchema, { transactions: [create(TransactionSchema)] }),
      { caller: { address: "192.0.2.7", identity: undefined } } as Call,
    );
    const outcome = response.outcomes?.[0];
    const { transient } = errorCatalog[reason];
    t.is(outcome?.status, transient ? TransactionStatus.UNSPECIFIED : TransactionStatus.REJECTED, reason);
    t.is(outcome?.reason, "Not now.");
    statuses.add(outcome?.status);
  }
  t.is(statuses.size, 2);
});

test("a peer is penalized for a block that cannot be applied unless the reason is transient", async (t) => {
  for (const reason of reasons) {
    const penalized: string[] = [];
    const errors: unknown[] = [];
    let applied = 0;
    const peer = { endpoint: "https://a.test", head: { number: 1n }, lowestBlock: 1n } as BookEntry;
    const failure = new RpcError(reason, "No.");
    const sync = createSync({
      book: {
        healthy: () => (applied === 0 ? [peer] : []),
        highestBlock: () => 1n,
        penalize: (endpoint) => penalized.push(endpoint),
        pause: () => t.fail(reason),
        recordFailure: () => t.fail(reason),
      },
      chain: {
        head: () => 0n,
        apply() {
          applied++;
          return Promise.reject(failure);
        },
        receive: () => t.fail(reason),
      },
      async *blocks() {
        yield await Promise.resolve({ block: create(BlockSchema) });
      },
      nowMs: () => 0,
      onError: (error) => errors.push(error),
      onEnd: () => undefined,
      onPeerDropped: () => undefined,
    });
    sync.kick();
    await sync.settled();
    const { transient } = errorCatalog[reason];
    t.deepEqual(penalized, transient ? [] : [peer.endpoint], reason);
    t.deepEqual(errors, transient ? [failure] : [], reason);
    await sync.stop();
  }
});
