/** How fast a node joins from a snapshot, beside one that applies every block, both of the same source in one run. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createNodeKey, nodeKeyPath } from "../src/base/node-key.js";
import { createBlockStore } from "../src/chain/block-store.js";
import { describeHeader } from "../src/chain/transaction.js";
import { openForReading } from "../src/db/open.js";
import { writeSnapshot } from "../src/node/snapshots.js";
import { makeBlocks, withChain } from "./blocks.js";
import type { OwnNodeBench, Row } from "./row.js";
import { startGatehouse } from "./server-process.js";

/** What the benchmark takes. */
export interface SnapshotBench extends OwnNodeBench {
  /** How many transactions there are, each of which makes a program. */
  readonly transactions: number;
}

const blockTransactions = 100;

/** Makes a chain and a snapshot of it, and has nodes join. */
export async function benchSnapshot({ directory, transactions, say }: SnapshotBench): Promise<Row[]> {
  const home = join(directory, "snapshot");
  const sourceDir = join(home, "source");
  await mkdir(sourceDir, { recursive: true });
  const key = await createNodeKey(nodeKeyPath(sourceDir));
  const genesis = JSON.stringify({ name: "bench", authorities: [key.publicKey] });
  const genesisFile = join(home, "genesis.json");
  await writeFile(genesisFile, genesis);
  const count = Math.ceil(transactions / blockTransactions);
  say(`making ${count} blocks of ${blockTransactions}`);
  const file = join(sourceDir, "gatehouse.sqlite");
  await withChain(file, genesis, key, async (chain) => void (await makeBlocks(chain, key, count, blockTransactions)));

  say("making a snapshot");
  const database = await openForReading(`sqlite:${file}`);
  const head = (await createBlockStore(database.read).head())!;
  const begunMs = performance.now();
  const folder = join(sourceDir, "snapshots", "of-the-bench");
  const { signal } = new AbortController();
  await database.ofOneMoment((db) => writeSnapshot(db, head, { folder, signal }));
  const madeS = (performance.now() - begunMs) / 1_000;
  await database.close();

  const source = await startGatehouse(["--genesis", genesisFile, "--data-dir", sourceDir, "--allow-private-peers"]);
  const peers = join(home, "peers.json");
  await writeFile(peers, JSON.stringify([{ url: `https://127.0.0.1:${source.omniPort}` }]));
  const flags = ["--genesis", genesisFile, "--peers", peers, "--allow-private-peers", "--loop-interval", "0.1"];
  const times: Record<string, number> = {};
  try {
    for (const how of ["snapshot", "blocks"]) {
      say(`joining: ${how}`);
      const node = await startGatehouse([...flags, "--data-dir", join(home, how), "--sync", how]);
      const sinceMs = performance.now();
      await reaches(node.port, count);
      times[how] = (performance.now() - sinceMs) / 1_000;
      await node.stop();
      const joined = await openForReading(`sqlite:${join(home, how, "gatehouse.sqlite")}`);
      const there = await createBlockStore(joined.read).head();
      await joined.close();
      if (describeHeader(there!.header).stateRoot !== describeHeader(head.header).stateRoot) {
        throw new Error("The state that was joined is another one.");
      }
    }
  } finally {
    await source.stop();
  }
  const { snapshot = NaN, blocks = NaN } = times;
  return [
    {
      name: `joining, ${(count * blockTransactions).toLocaleString("en")} transactions`,
      baseline: "applying every block",
      ratio: blocks / snapshot,
      figures: { "s from a snapshot": snapshot, "s from blocks": blocks, "s to make the snapshot": madeS },
    },
  ];
}

async function reaches(port: number, number: number): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/chain/head`);
    if (response.ok && ((await response.json()) as { number: number }).number >= number) {
      return;
    }
    await sleep(20);
  }
}
