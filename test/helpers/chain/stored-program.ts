/** Stores a program in block 1 of a node. */
import { createHash } from "node:crypto";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { connectGrpc } from "../wire/grpc-client.js";
import { type TestKey, testKey } from "./keys.js";
import { askJson } from "../wire/plain-client.js";
import type { TestNode } from "../nodes/start-node.js";
import type { Teardown } from "../nodes/teardown.js";
import { createPublic, signTransaction } from "./transactions.js";
import { until } from "../nodes/until.js";

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
  sender: TestKey = testKey(90),
): Promise<{ readonly hash: string; readonly address: string }> {
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const transaction = signTransaction(sender, 1, createPublic(name, data));
  const { hash } = await client.call(ChainService.method.submitTransaction, { transaction });
  await until(async () => (await askJson<{ number: number }>(node.port, "/chain/head")).number === 1);
  const digest = createHash("sha256").update(`${sender.publicKey}:${name}:1:`).digest("hex");
  return { hash, address: `stor-${digest.slice(0, 40)}` };
}
