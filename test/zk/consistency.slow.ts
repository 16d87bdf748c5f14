/** Roots, blocks and proofs are consistent while blocks are applied, and after each kill. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { fromBinary } from "@bufbuild/protobuf";
import { IMT } from "@zk-kit/imt";
import test from "ava";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { poseidon2 } from "poseidon-lite/poseidon2";
import { TransactionBodySchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { decodeBlock } from "../../src/chain/transactions/transaction.js";
import { authorityDirectory, startTestNode } from "../helpers/nodes/start-node.js";
import { commit, signZk } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { until } from "../helpers/nodes/until.js";

const [authority, alice] = [testKey(1), testKey(2)];
const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

interface Proof {
  readonly proof: { siblings: [string][]; pathIndices: number[]; root: string; leaf: string };
  readonly blockNumber: number;
}

/** Returns true if the path of a proof leads to its root. */
function isValidPath({ proof }: Proof): boolean {
  const root = proof.siblings.reduce((node, [sibling], level) => {
    const pair = [node, BigInt(sibling)];
    return poseidon2(proof.pathIndices[level] === 0 ? pair : pair.reverse());
  }, BigInt(proof.leaf));
  return root === BigInt(proof.root);
}

test("reads are consistent while blocks are applied, and after kill -9", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const seen = new Map<number, string>();
  let leaf = 0;
  let proofs = 0;
  let reads = 0;
  for (let round = 0; round < 4; round++) {
    const target = { proofs: proofs + 10, roots: seen.size + 2 };
    const isDone = (): boolean => proofs >= target.proofs && seen.size >= target.roots;
    const node = await startNodeProcess(t, dir, ["--genesis", join(dir, "genesis.json")]);
    const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
    const add = async (): Promise<void> => {
      leaf++;
      await client.submitTransaction({ transaction: signZk(alice, leaf, commit(element(leaf))) });
    };
    const write = async (): Promise<void> => {
      while (!isDone()) {
        await add();
      }
    };
    const read = async (): Promise<void> => {
      while (!isDone()) {
        const root = await askJson<{ rootHash: string; blockNumber: number }>(node.port, "/zk/merkle-root");
        seen.set(root.blockNumber, root.rootHash);
        const { status, text } = await ask(node.port, `/zk/merkle/proof/${element(1 + (reads++ % leaf))}`);
        if (status === 200) {
          const proof = JSON.parse(text) as Proof;
          t.true(isValidPath(proof));
          t.is(seen.get(proof.blockNumber) ?? proof.proof.root, proof.proof.root);
          seen.set(proof.blockNumber, proof.proof.root);
          proofs++;
        }
      }
    };
    await Promise.all([write(), read(), read()]);
    // The node produces a block every 250 ms. Each round kills it at another moment in between.
    const unfinished = Promise.allSettled(Array.from({ length: 10 }, add));
    await sleep(60 * round);
    node.child.kill("SIGKILL");
    await Promise.all([node.ended, unfinished]);
  }

  const node = await startTestNode(t, {}, dir);
  // Pending transactions of the killed node are included first, so that no leaf appears between the two reads below.
  await until(async () => (await askJson<{ mempool_size: number }>(node.port, "/health")).mempool_size === 0);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.rpcUrl }));
  const leaves: bigint[] = [];
  for await (const { block } of client.listBlocks({ fromNumber: 1n })) {
    const { header } = decodeBlock(block!);
    for (const { body } of block!.transactions) {
      const { operation } = fromBinary(TransactionBodySchema, body);
      if (operation.case === "zk" && operation.value.operation.case === "addCommitment") {
        leaves.push(BigInt(operation.value.operation.value.commitment));
      }
    }
    t.is(seen.get(Number(header.number)) ?? header.commitmentRoot, header.commitmentRoot);
  }
  const { rootHash, leafCount } = await askJson<{ rootHash: string; leafCount: number }>(node.port, "/zk/merkle-root");
  t.is(leafCount, leaves.length);
  t.is(BigInt(rootHash), new IMT(poseidon2, 20, 0n, 2, leaves).root as bigint);
  t.log(`${leaves.length} leaves, ${seen.size} roots seen, ${proofs} proofs`);
});
