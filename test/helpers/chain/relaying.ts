/** Transactions of one sender, submitted to nodes that relay them. */
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { connectGrpc, type TestGrpcClient } from "../wire/grpc-client.js";
import { testKey } from "./keys.js";
import type { TestNode } from "../nodes/start-node.js";
import type { Teardown } from "../nodes/teardown.js";
import { createPublic, signTransaction } from "./transactions.js";

/** The sender. */
export const alice = testKey(90);

/** Creates a client of a node. It is closed after the test. */
export function clientOf(t: Teardown, node: TestNode): TestGrpcClient {
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  return client;
}

/** Submits the transaction of a sender with this nonce, and returns its hash. */
export async function submit(client: TestGrpcClient, nonce: number): Promise<string> {
  const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}"));
  return (await client.call(ChainService.method.submitTransaction, { transaction })).hash;
}

/** Returns the status of a transaction, as the node of the client has it. */
export const statusOf = async (client: TestGrpcClient, hash: string) =>
  await client.call(ChainService.method.getTransaction, { hash });
