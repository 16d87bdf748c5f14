/** Invalid proofs of many clients at a real node. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { toHex } from "../../src/zk/poseidon.js";
import { signZk, type ZkChange } from "../helpers/chain/transactions.js";
import { proveAnything, verificationKeyJson } from "../helpers/chain/groth16.js";
import { testKey } from "../helpers/chain/keys.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";

const authority = testKey(1);

test("120 clients with invalid proofs do not delay honest spends", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const genesis = { name: "test", authorities: [authority.publicKey], zk: { verificationKey: verificationKeyJson } };
  const text = JSON.stringify(genesis);
  await writeFile(join(dir, "genesis.json"), text);
  const node = await startTestNode(t, { genesis: "genesis.json" }, dir);
  const { submitTransaction } = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  const { rootHash: root } = await askJson<{ rootHash: string }>(node.port, "/zk/merkle-root");
  const spending = (nullifier: bigint, signals: readonly [bigint, bigint]): ZkChange => ({
    case: "spendNullifier",
    value: { nullifierHash: toHex(nullifier), root, proof: proveAnything(signals) },
  });
  const submit = async (seed: number, change: ZkChange): Promise<string> =>
    await submitTransaction({ transaction: signZk(testKey(seed), 1, change, { network: sha256(text) }) }).then(
      () => "accepted",
      (error: unknown) => (error as Error).message,
    );
  const wrong = Array.from({ length: 120 }, (_, i) => spending(BigInt(1_000 + i), [BigInt(i), 1n]));
  const right = Array.from({ length: 20 }, (_, i) => spending(BigInt(1 + i), [BigInt(1 + i), BigInt(root)]));
  const rejections = Promise.all(wrong.map((change, i) => submit(100 + i, change)));
  t.deepEqual(await Promise.all(right.map((change, i) => submit(2 + i, change))), new Array(20).fill("accepted"));
  t.true((await rejections).every((message) => message.includes("The proof is not valid")));
  await until(async () => {
    const { used } = await askJson<{ used: boolean }>(node.port, `/zk/nullifier/${toHex(20n)}`);
    return used;
  });
});
