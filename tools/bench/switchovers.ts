/**
 * Measures how long a node produces no blocks while its PostgreSQL servers switch over, and checks that no data is
 * lost.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { genesisOf, testKey, writeKey } from "../../test/helpers/chain/keys.js";
import { startPostgresPair } from "../../test/helpers/databases/postgres-pair.js";
import { changeUnderLoad } from "../../test/helpers/databases/switchovers.js";
import type { NodeBench, Row } from "./row.js";
import { startGatehouse } from "./server-process.js";
import { percentile } from "./statistics.js";

const name = "switchovers of PostgreSQL";

export interface SwitchoverBench extends Pick<NodeBench, "directory" | "say"> {
  /** Number of switchovers. */
  readonly changes: number;
}

/**
 * Runs the benchmark.
 *
 * @throws Error if a block or a transaction is lost, or a block number is used twice.
 */
export async function benchSwitchovers({ directory, changes, say }: SwitchoverBench): Promise<Row[]> {
  const pair = await startPostgresPair();
  if (typeof pair === "string") {
    return [{ name, figures: {}, note: `PostgreSQL does not start: ${pair}` }];
  }
  try {
    const dataDir = join(directory, "switchovers");
    await mkdir(dataDir);
    const [authority, genesis] = [testKey(1), join(dataDir, "genesis.json")];
    await writeFile(genesis, genesisOf(authority));
    await writeKey(join(dataDir, "identity.key"), authority);
    const flags = ["--genesis", genesis, "--data-dir", dataDir, "--database", pair.urls.join(",")];
    const node = await startGatehouse(flags, { hidesLog: true });
    try {
      const url = `http://127.0.0.1:${node.port}`;
      const { withoutMs, lost, doubled, ...counts } = await changeUnderLoad({ pair, url, changes, say });
      if (lost.length + doubled.length > 0) {
        throw new Error(`Lost: ${lost.join(", ")}; numbers used twice: ${doubled.join(", ")}.`);
      }
      const figures = { "p50 ms": percentile(withoutMs, 0.5), "p99 ms": percentile(withoutMs, 0.99) };
      return [{ name, figures: { ...figures, changes, ...counts } }];
    } finally {
      await node.stop();
    }
  } finally {
    await pair.remove();
  }
}
