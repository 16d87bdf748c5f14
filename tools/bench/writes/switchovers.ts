/**
 * Measures how long a node produces no blocks while its PostgreSQL servers switch over, and checks that no data is
 * lost.
 */
import { join } from "node:path";
import { startPostgresPair } from "../../../test/helpers/databases/postgres-pair.js";
import { changePlacesOf, changeUnderLoad } from "../../../test/helpers/databases/switchovers.js";
import { makeHome } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";
import { percentile } from "../statistics.js";

const name = "switchovers of PostgreSQL";

/**
 * Runs the benchmark.
 *
 * @throws Error if a block or a transaction is lost, or a block number is used twice.
 */
export async function benchSwitchovers({ directory, changes, say }: BenchSettings): Promise<Row[]> {
  const pair = await startPostgresPair();
  if (typeof pair === "string") {
    return [{ name, figures: {}, note: `PostgreSQL does not start: ${pair}` }];
  }
  try {
    const { flags } = await makeHome(join(directory, "switchovers"));
    const node = await startGatehouse([...flags, "--database", pair.urls.join(",")], { hidesLog: true });
    try {
      const url = `http://127.0.0.1:${node.port}`;
      const {
        withoutMs: unsortedMs,
        lost,
        doubled,
        ...counts
      } = await changeUnderLoad({ url, changes, change: changePlacesOf(pair), say });
      if (lost.length + doubled.length > 0) {
        throw new Error(`Lost: ${lost.join(", ")}; numbers used twice: ${doubled.join(", ")}.`);
      }
      const withoutMs = unsortedMs.toSorted((a, b) => a - b);
      const figures = { "p50 ms": percentile(withoutMs, 0.5), "p99 ms": percentile(withoutMs, 0.99) };
      return [{ name, figures: { ...figures, changes, ...counts } }];
    } finally {
      await node.stop();
    }
  } finally {
    await pair.remove();
  }
}
