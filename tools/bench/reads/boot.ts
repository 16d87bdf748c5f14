/** Measures the time from process start to the first response, and the memory of an idle node. */
import { setTimeout as sleep } from "node:timers/promises";
import { httpLoad } from "../load/load.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";
import { median } from "../statistics.js";

/** Wait in milliseconds until V8 has released the memory of the start. */
const idleMs = 10_000;

/** Starts a node repeatedly on the same data. */
export async function benchBoot({ flags, rounds, say }: BenchSettings): Promise<Row[]> {
  const bootMs: number[] = [];
  const idleMb: number[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`boot ${round + 1} of ${rounds}`);
    const start = performance.now();
    const node = await startGatehouse(flags);
    try {
      const { status } = await fetch(`http://127.0.0.1:${node.port}/health`);
      if (status !== 200) {
        throw new Error(`/health was answered with ${status}.`);
      }
      bootMs.push(performance.now() - start);
      await sleep(idleMs);
      idleMb.push((await node.usage()).rssBytes / 1024 ** 2);
      if (round === rounds - 1) {
        say("memory after load");
        await httpLoad("/health")(node.port, 5);
        await sleep(2_000);
        return [
          { name: "boot to first 200", figures: { ms: median(bootMs) } },
          {
            name: "resident memory",
            figures: { "idle MiB": median(idleMb), "after load MiB": (await node.usage()).rssBytes / 1024 ** 2 },
          },
        ];
      }
    } finally {
      await node.stop();
    }
  }
  return [];
}
