/** Transactions, submitted to nodes over plain HTTP or gRPC. */
import { sha256 } from "../../../src/base/crypto/hash.js";
import { type TestKey, testKey } from "./keys.js";
import { ask, askJson, type PlainResponse } from "../wire/plain-client.js";
import { createPublic, type Operation, signTransaction, type SigningOptions, submission } from "./transactions.js";
import { until } from "../nodes/until.js";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, TransactionStatus } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import type { RunningCli } from "../nodes/run-cli.js";
import { connectGrpc, type TestGrpcClient } from "../wire/grpc-client.js";
import type { TestNode } from "../nodes/start-node.js";
import type { Teardown } from "../nodes/teardown.js";
import { createHash } from "node:crypto";

/** Submits a transaction over HTTP, from one of this machine's addresses. */
export async function post(port: number, transaction: Transaction, localAddress?: string): Promise<PlainResponse> {
  return await ask(
    port,
    "/chain/transactions",
    submission(transaction),
    localAddress === undefined ? {} : { localAddress },
  );
}

/** Creates a transaction that creates a program, whose name has the nonce. */
export const newProgram = (key: TestKey, nonce: number, json = "{}", options: SigningOptions = {}): Transaction =>
  signTransaction(key, nonce, createPublic(`p${nonce}`, json), options);

export type ChainClient = Client<typeof ChainService>;

/** Creates a client of a node, in this process or a child process. */
export function chainClient(node: { readonly rpcUrl: string } | Pick<RunningCli, "ready">): ChainClient {
  const baseUrl = "ready" in node ? node.ready.rpc : node.rpcUrl;
  return createClient(ChainService, createGrpcTransport({ baseUrl, readMaxBytes: 8 * 1024 * 1024 }));
}

/** Returns true if blocks include all of these transactions. */
export async function areIncluded(client: ChainClient, ...hashes: readonly string[]): Promise<boolean> {
  const responses = await Promise.all(hashes.map((hash) => client.getTransaction({ hash })));
  return responses.every(({ status }) => status === TransactionStatus.INCLUDED);
}

/** Submits a transaction. Returns its hash once a block includes it. */
export async function include(client: ChainClient, transaction: Transaction): Promise<string> {
  const { hash } = await client.submitTransaction({ transaction });
  await until(() => areIncluded(client, hash));
  return hash;
}

/** Submits an operation. Resolves to the hash of the transaction once a block includes it. */
export async function writeAs(key: TestKey, port: number, nonce: number, operation: Operation): Promise<string> {
  const transaction = signTransaction(key, nonce, operation);
  const hash = sha256(transaction.body);
  await post(port, transaction);
  await until(async () => (await ask(port, `/chain/transactions/${hash}`)).text.includes('"included"'));
  return hash;
}

/** The default sender. */
export const alice = testKey(90);

/** Creates a client of a node. It is closed after the test. */
export function clientOf(t: Teardown, node: { readonly port: number }): TestGrpcClient {
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
