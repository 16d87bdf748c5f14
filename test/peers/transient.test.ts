/** The reaction to an error of a peer depends on its reason: transient errors have no consequences. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { BlockSchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { RelayTransactionsRequestSchema } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import type { BookEntry } from "../../src/peers/address-book/peer.js";
import { testKey } from "../helpers/chain/keys.js";
import { createRelayReceiver } from "../../src/peers/relay/relay-receiver.js";
import { createSync } from "../../src/peers/sync/sync.js";
import { errorCatalog, RpcError, type Reason } from "../../src/rpc/errors.js";

const reasons = Object.keys(errorCatalog) as Reason[];

test("a relayed transaction is rejected permanently unless the reason is transient", async (t) => {
  const request = create(RelayTransactionsRequestSchema, { transactions: [create(TransactionSchema)] });
  for (const reason of reasons) {
    const receive = createRelayReceiver({
      acceptTransaction: () => Promise.reject(new RpcError(reason, "Not now.")),
      onError: () => t.fail(reason),
    });
    const status = errorCatalog[reason].transient ? TransactionStatus.UNSPECIFIED : TransactionStatus.REJECTED;
    t.deepEqual(await receive(request, "192.0.2.7"), [{ status, reason: "Not now." }], reason);
  }
  t.is(new Set(reasons.map((reason) => errorCatalog[reason].transient)).size, 2);
});

test("a peer is penalized for a block that cannot be applied unless the reason is transient", async (t) => {
  for (const reason of reasons) {
    const penalized: string[] = [];
    const errors: unknown[] = [];
    let applied = 0;
    const peer = { endpoint: "https://a.test", head: { number: 1n }, lowestBlock: 1n } as BookEntry;
    const failure = new RpcError(reason, "No.");
    const fail = () => t.fail(reason);
    const sync = createSync({
      self: { key: testKey(1), endpoint: () => "https://b.test" },
      book: {
        ...{ healthy: () => (applied === 0 ? [peer] : []), highestBlock: () => 1n, pause: fail, recordFailure: fail },
        penalize: (endpoint) => void penalized.push(endpoint),
      },
      chain: {
        head: () => 0n,
        apply() {
          applied++;
          return Promise.reject(failure);
        },
        receive: fail,
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
