/** Measures a commitment tree with many leaves: its growth and proofs, against bare servers and zk-kit's tree. */
import { checkOperation } from "../../../src/node/chain/transaction-executor.js";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { IMT } from "@zk-kit/imt";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { poseidon2 } from "poseidon-lite/poseidon2";
import { ChainService, ConsensusService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { verifyTransaction, signBlock } from "../../../src/chain/transactions/transaction.js";
import { startProgress } from "../../../src/cli/terminal/progress.js";
import type { Database } from "../../../src/db/queries/database.js";
import { openDatabase } from "../../../src/db/open.js";
import { migrate } from "../../../src/node/migrations/migrate.js";
import { fillRowHashes } from "../../../test/helpers/databases/fill-row-hashes.js";
import { fromHex32 } from "../../../src/base/crypto/hash.js";
import type { Leaf } from "../../../src/tree/path.js";
import { commitmentsLeaf, nullifierLeaf } from "../../../src/tree/state-leaves.js";
import { frontierOf, appendToTree, type Peaks, peaksAfter } from "../../../src/zk/fold.js";
import { maxLeaves } from "../../../src/zk/merkle-tree.js";
import { appendLeaves, createTreeChanges } from "../../../src/zk/tree-store.js";
import { fieldOrder, toHex, treeDepth } from "../../../src/zk/poseidon.js";
import { createZkThreads, type ZkThreads } from "../../../src/zk/worker-pool.js";
import { compareReads } from "../load/compare.js";
import { authority, makeHome } from "../blocks.js";
import { genesisOf, testKey } from "../../../test/helpers/chain/keys.js";
import { commit, signZk } from "../../../test/helpers/chain/transactions.js";
import { httpLoad, type Load, randomLoad } from "../load/load.js";
import { commitToLoaded, plantLeaves } from "../loaded-state.js";
import { probeHealth } from "../load/prober.js";
import type { BenchSettings, Row } from "../row.js";
import { controlOf, type ServerProcess, startGatehouse } from "../servers/server-process.js";
import { latencyFigures, median, ratioOfRounds } from "../statistics.js";

const loadedAtOnce = 10_000;
const largeBlock = 10_000;
/** Number of leaves in a block, about the limit by cost. */
const fullBlock = 480;
const nullifiers = 100_000;

/** Creates elements that look like hashes. */
const leafOf = (i: number): bigint => (BigInt(i + 1) ** 23n * 1_000_003n) % fieldOrder;

/** Loads the leaves, and measures. */
export async function benchTree(bench: BenchSettings): Promise<Row[]> {
  const workerPool = createZkThreads(2);
  try {
    return await benchWith(workerPool, bench);
  } finally {
    await workerPool.stop();
  }
}

async function benchWith(workerPool: ZkThreads, bench: BenchSettings): Promise<Row[]> {
  const { directory, say } = bench;
  const leaves = Math.min(bench.leaves, maxLeaves - 5 * largeBlock);
  // Another key of two authorities, so that the node does not produce blocks itself.
  const authorities = [authority, testKey(2)] as const;
  const genesis = genesisOf(...authorities);
  const { dir, flags, url } = await makeHome(join(directory, "tree"), { key: testKey(3), genesis });
  const grown = await growInDatabase(url, leaves, workerPool, say);
  await commitToLoaded(url, authorities, (database) => plantLeaves(database, leavesOf(grown)));

  const bootStart = performance.now();
  const node = await startGatehouse(flags);
  try {
    await fetch(`http://127.0.0.1:${node.port}/health`);
    const bootMs = performance.now() - bootStart;
    const proofOf = (i: number): string => `/zk/merkle/proof/${toHex(leafOf(i))}`;
    const randomIndex = (count: number): number => Math.floor(Math.random() * count);
    const spent = `/zk/nullifier/${toHex(leafOf(7))}`;
    const subjects: (readonly [name: string, path: string, load: Load])[] = [
      ["root", "/zk/merkle-root", httpLoad("/zk/merkle-root")],
      ["proof, hot", proofOf(leaves >> 1), httpLoad(proofOf(leaves >> 1))],
      ["proof, cold", proofOf(leaves >> 1), randomLoad(() => proofOf(randomIndex(leaves)))],
      ["nullifier, hot", spent, httpLoad(spent)],
      ["nullifier, cold", spent, randomLoad(() => `/zk/nullifier/${toHex(leafOf(randomIndex(2 * nullifiers)))}`)],
    ];
    const rows = [...grown.rows];
    rows.push(...(await compareReads(subjects, node, bench)));
    say("a block of 10,000 commitments, and /health meanwhile");
    rows.push(await applyFullBlock(node, dir, grown.leafCount, grown.peaks, workerPool));
    rows.push({
      name: `with ${leaves.toLocaleString("en")} leaves`,
      figures: {
        "load s": grown.loadS,
        "boot ms": bootMs,
        "memory after all MiB": (await node.usage()).rssBytes / 1024 ** 2,
      },
    });
    return rows;
  } finally {
    await node.stop();
  }
}

async function growInDatabase(url: string, leaves: number, workerPool: ZkThreads, say: BenchSettings["say"]) {
  const database = await openDatabase(url);
  await migrate(database);
  let block = 0;
  let leafCount = 0;
  const append = async (count: number): Promise<number> => {
    const added = Array.from({ length: count }, (_, i) => leafOf(leafCount + i));
    const start = performance.now();
    block++;
    await database.transaction((db) =>
      appendLeaves(createTreeChanges(db), {
        leaves: added,
        block: { number: BigInt(block), timeMs: 0 },
        foldAll: workerPool.foldAll,
      }),
    );
    leafCount += count;
    return (performance.now() - start) / 1000;
  };

  const loadStart = performance.now();
  const progress = startProgress("leaves", leaves);
  while (leafCount < leaves) {
    await append(Math.min(loadedAtOnce, leaves - leafCount));
    progress.update(leafCount);
  }
  progress.end();
  const loadS = (performance.now() - loadStart) / 1000;

  const rows: Row[] = [];
  for (const [count, times] of [
    [1, 50],
    [100, 10],
    [largeBlock, 3],
  ] as const) {
    say(`append ${count}`);
    const ours: number[] = [];
    for (let i = 0; i < times; i++) {
      ours.push(await append(count));
    }
    const theirs = zkKitSeconds(count);
    rows.push({
      name: `append ${count.toLocaleString("en")}`,
      baseline: "zk-kit's tree",
      ...ratioOfRounds(
        ours.map(() => theirs),
        ours,
      ),
      figures: { s: median(ours), "leaves/s": count / median(ours), "zk-kit s": theirs },
    });
  }
  await insertNullifiers(database);
  const peaks = await createTreeChanges(database.write).peaks(leafCount);
  // Insert all leaves as if they had been in the genesis.
  await database.write.runAll((sql) => [
    sql("merkle_roots").where("block_number", "<", block).delete(),
    sql("merkle_roots").update({ block_number: 0 }),
  ]);
  await fillRowHashes(database.write);
  await database.close();
  return { rows, loadS, leafCount, peaks };
}

/** Measures another implementation, in memory: one leaf at a time, or in bulk if that is faster. */
function zkKitSeconds(count: number): number {
  const leaves = Array.from({ length: count }, (_, i) => leafOf(i));
  const tree = count < 1_000 ? new IMT(poseidon2, treeDepth, 0n, 2) : undefined;
  const start = performance.now();
  if (tree === undefined) {
    new IMT(poseidon2, treeDepth, 0n, 2, leaves);
  } else {
    leaves.forEach((leaf) => tree.insert(leaf));
  }
  return (performance.now() - start) / 1000;
}

/** Returns the leaves of the state tree that commit to the commitment tree and the nullifiers. */
function leavesOf({ leafCount, peaks }: { readonly leafCount: number; readonly peaks: Peaks }): Leaf[] {
  const root = fromHex32(toHex(frontierOf(leafCount, peaks)[treeDepth]!));
  const spent = Array.from({ length: nullifiers }, (_, i) => fromHex32(toHex(leafOf(i))));
  const transactionHash = fromHex32(toHex(0n));
  return [
    commitmentsLeaf({ root, leafCount }),
    ...spent.map((nullifier) => nullifierLeaf({ nullifier, blockNumber: 0n, transactionHash })),
  ];
}

async function insertNullifiers({ write }: Database): Promise<void> {
  for (let i = 0; i < nullifiers; i += 400) {
    const rows = Array.from({ length: 400 }, (_, k) => ({
      hash: toHex(leafOf(i + k)),
      block_number: 0,
      transaction_hash: toHex(0n),
    }));
    await write.run((sql) => sql("nullifiers").insert(rows));
  }
}

async function applyFullBlock(
  node: ServerProcess,
  dataDir: string,
  leafCount: number,
  peaks: Peaks,
  workerPool: ZkThreads,
): Promise<Row> {
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${node.port}` }));
  const consensus = createClient(ConsensusService, controlOf(dataDir));
  const added = Array.from({ length: fullBlock }, (_, i) => leafOf(leafCount + i));
  const { genesisHash: network } = await chain.getHead({});
  const signed = added.map((leaf, i) => signZk(authority, i + 1, commit(toHex(leaf)), { network }));
  const after = leafCount + fullBlock;
  const runs = await appendToTree(leafCount, added, peaks, workerPool.foldAll);
  const { header } = await consensus.dryRunBlock({ timestampMs: BigInt(Date.now()), transactions: signed });
  const block = signBlock(
    {
      ...header!,
      proposer: authority.publicKey,
      commitmentRoot: toHex(frontierOf(after, peaksAfter(after, peaks, runs))[treeDepth]!),
    },
    signed.map((one) => verifyTransaction(one, { network, checkOperation })),
    (bytes) => authority.sign(bytes),
  );
  await sleep(500);
  const start = performance.now();
  const [latencies, applyS] = await Promise.all([
    probeHealth({ port: node.port, seconds: 6 }),
    consensus.applyBlock({ block: block.signed }).then(() => (performance.now() - start) / 1000),
  ]);
  return {
    name: "a full block of commitments",
    figures: {
      "apply s": applyS,
      "transactions/s": fullBlock / applyS,
      ...latencyFigures(latencies, "/health "),
    },
  };
}
