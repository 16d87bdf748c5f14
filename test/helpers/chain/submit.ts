/** Transactions, submitted to nodes over plain HTTP or gRPC. */
import { sha256 } from "../../../src/base/crypto/hash.js";
import { type TestKey, testKey } from "./keys.js";
import { ask, askJson } from "../wire/plain-client.js";
import { type Operation, signTransaction, createPublic } from "./transactions.js";
import { until } from "../nodes/until.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { connectGrpc, type TestGrpcClient } from "../wire/grpc-client.js";
import type { TestNode } from "../nodes/start-node.js";
import type { Teardown } from "../nodes/teardown.js";
import { createHash } from "node:crypto";

/** Submits an operation. Resolves to the hash of the transaction once a block includes it. */
export async function writeAs(key: TestKey, port: number, nonce: number, operation: Operation): Promise<string> {
  const { body, signature } = signTransaction(key, nonce, operation);
  const hash = sha256(body);
  const transaction = {
    body: Buffer.from(body).toString("base64"),
    signature: Buffer.from(signature).toString("base64"),
  };
  const headers = { "Content-Type": "application/json" };
  await ask(port, "/chain/transactions", { method: "POST", headers, body: JSON.stringify({ transaction }) });
  await until(async () => (await ask(port, `/chain/transactions/${hash}`)).text.includes('"included"'));
  return hash;
}

/** The default sender. */
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

/**
 * Stores a public program, of a sender who has sent nothing before, as the first transaction of the node's block 1.
 *
 * @param data JSON text.
 */
export async function storeProgram(
  t: Teardown,
  node: TestNode,
  name: string,
  data: string,
  sender: TestKey = alice,
): Promise<{ readonly hash: string; readonly address: string }> {
  const client = clientOf(t, node);
  const transaction = signTransaction(sender, 1, createPublic(name, data));
  const { hash } = await client.call(ChainService.method.submitTransaction, { transaction });
  await until(async () => (await askJson<{ number: number }>(node.port, "/chain/head")).number === 1);
  const digest = createHash("sha256").update(`${sender.publicKey}:${name}:1:`).digest("hex");
  return { hash, address: `stor-${digest.slice(0, 40)}` };
}
