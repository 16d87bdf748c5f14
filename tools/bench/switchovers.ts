/** How long a node makes no blocks while its servers of PostgreSQL change places, and that nothing is lost of it. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { genesisOf } from "../../test/helpers/chain/genesis.js";
import { testKey, writeKey } from "../../test/helpers/chain/keys.js";
import { startPostgresPair } from "../../test/helpers/databases/postgres-pair.js";
import { changeUnderLoad } from "../../test/helpers/databases/switchovers.js";
import type { OwnNodeBench, Row } from "./row.js";
import { startGatehouse } from "./server-process.js";
import { percentile } from "./statistics.js";

const name = "switchovers of PostgreSQL";

/** What the benchmark takes. */
export interface SwitchoverBench extends Pick<OwnNodeBench, "directory" | "say"> {
  /** How often the servers change places. */
  readonly changes: number;
}

/**
 * Runs it.
 *
 * @throws Error when a block or a transaction is lost, or a number is used twice.
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
