/** Measures the verification of attestations by a node against direct calls of the library. */
import type { Options, Result } from "autocannon";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { buildPresentation, notaryKey } from "../../../test/helpers/process/presentation.js";
import { makeHome } from "../blocks.js";
import { autocannon } from "../load/load.js";
import { probeHealth } from "../load/prober.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";
import { latencyFigures, median, ratioOfRounds } from "../statistics.js";

/** Number of concurrent requests: one is verified, the others wait, none is rejected. */
const concurrency = 32;

/** Measures a small presentation and one of 100 kB. */
export async function benchAttestation({ directory, rounds, seconds, say }: BenchSettings): Promise<Row[]> {
  const { flags } = await makeHome(join(directory, "attestation"));
  const node = await startGatehouse([...flags, "--tlsnotary-enabled", "--notary-keys", notaryKey]);
  const rows: Row[] = [];
  try {
    for (const [name, presentation] of [
      ["verify, 750 bytes", buildPresentation()],
      ["verify, 100 kB", buildPresentation({ recv: "x".repeat(100_000), revealRecv: [[0, 100_000]] })],
    ] as const) {
      say(name);
      const ours: number[] = [];
      const theirs: number[] = [];
      let last: Result | undefined;
      // Warm up for the same time first: a cold node needs twice the time for each.
      await load(node.port, presentation, seconds);
      for (let round = 0; round < rounds; round++) {
        last = await load(node.port, presentation, seconds);
        ours.push(last.requests.total / last.duration);
        theirs.push(await bareRate(presentation, seconds));
      }
      rows.push({
        name,
        baseline: "the bare call",
        ...ratioOfRounds(ours, theirs),
        figures: {
          "verifications/s": median(ours),
          "bare/s": median(theirs),
          "p50 ms": last!.latency.p50,
          "p99 ms": last!.latency.p99,
        },
      });
    }
    for (const [name, presentations] of [
      ["/health while verifying", [buildPresentation()]],
      ["/health while attacked", attacks(buildPresentation())],
    ] as const) {
      say(name);
      const [latencies] = await Promise.all([
        probeHealth({ port: node.port, seconds: 2 * seconds }),
        autocannon(requestsOf(node.port, presentations, 2 * seconds)),
      ]);
      rows.push({
        name,
        figures: {
          ...latencyFigures(latencies),
          "memory MiB": (await node.usage()).rssBytes / 1024 ** 2,
        },
      });
    }
  } finally {
    await node.stop();
  }
  return rows;
}

/** Invalid presentations: truncated, with forged lengths, random, and of the maximum size. */
function attacks(good: Buffer): Buffer[] {
  const forged = Array.from({ length: 40 }, (_, i) => {
    const bytes = Buffer.from(good);
    bytes.writeBigUInt64LE([2n ** 31n, 2n ** 62n, 1_000_000n, 60_000_000n][i % 4]!, 17 * i);
    return bytes;
  });
  return [...forged, good.subarray(0, 400), Buffer.alloc(512 * 1024, 0xff), Buffer.alloc(512 * 1024), Buffer.alloc(0)];
}

function requestsOf(port: number, presentations: readonly Buffer[], seconds: number): Options {
  return {
    url: `http://127.0.0.1:${port}/tlsnotary/verify`,
    connections: concurrency,
    duration: seconds,
    requests: presentations.map((presentation) => ({
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ attestation: presentation.toString("base64") }),
    })),
  };
}

async function load(port: number, presentation: Buffer, seconds: number): Promise<Result> {
  const result = await autocannon(requestsOf(port, [presentation], seconds));
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`${result.errors} requests failed, ${result.non2xx} were answered with an error.`);
  }
  return result;
}

/** Calls the library directly, one presentation after the other, in this thread. */
async function bareRate(presentation: Buffer, seconds: number): Promise<number> {
  const { Presentation } = await (library ??= loadLibrary());
  const verifyOne = (): void => {
    const read = Presentation.deserialize(presentation);
    read.verifying_key();
    read.verify();
    read.free();
  };
  verifyOne();
  const start = performance.now();
  let done = 0;
  while (performance.now() - start < seconds * 1000) {
    verifyOne();
    done++;
  }
  return (done / (performance.now() - start)) * 1000;
}

let library: ReturnType<typeof loadLibrary> | undefined;

async function loadLibrary() {
  Object.assign(globalThis, { self: { addEventListener: () => undefined, postMessage: () => undefined } });
  const loaded = await import("tlsn-wasm");
  const path = createRequire(import.meta.url).resolve("tlsn-wasm/tlsn_wasm_bg.wasm");
  loaded.initSync({ module: await readFile(path) } as never);
  return loaded;
}
