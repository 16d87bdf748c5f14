/**
 * Measures conditional requests with a 304 response against full responses, and the cost of computing the validators.
 */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { authority, makeBlocks, makeHome, programOf, withChain } from "../blocks.js";
import { autocannon, concurrency, httpLoad, type Load, measureInTurns } from "../load/load.js";
import type { BenchSettings, Row } from "../row.js";
import { type NodeProcess, startGatehouse } from "../servers/server-process.js";
import { median } from "../statistics.js";

/** Sizes in bytes of the documents, one program each. `smallPrograms` is the number of small programs in addition. */
const documentBytes = [100, 16_000, 128_000, 1_000_000];
const smallPrograms = 60;

export async function benchCaching({ directory, rounds, seconds, say, against }: BenchSettings): Promise<Row[]> {
  const { dir, flags, url } = await makeHome(join(directory, "caching"));
  say("making programs");
  await withChain(url, (chain) =>
    makeBlocks(chain, {
      count: 1,
      transactions: documentBytes.length + smallPrograms,
      operationOf: (n) => programOf(n, JSON.stringify({ text: "x".repeat(documentBytes[n - 1] ?? 100) })),
    }),
  );
  const otherDir = join(directory, "caching-before");
  await cp(dir, otherDir, { recursive: true });
  const node = await startGatehouse(flags);
  try {
    const before =
      against === undefined ? undefined : await startGatehouse([...flags, "--data-dir", otherDir], { build: against });
    try {
      const rows: Row[] = [];
      for (const [name, path] of await subjects(node.port, authority.publicKey)) {
        say(name);
        rows.push(await compareWithWhole(name, path, { node, before }, rounds, seconds));
      }
      return rows;
    } finally {
      await before?.stop();
    }
  } finally {
    await node.stop();
  }
}

async function subjects(port: number, owner: string): Promise<(readonly [name: string, path: string])[]> {
  const programs = await Promise.all(
    documentBytes.map(async (bytes, i) => {
      const found = await fetch(`http://127.0.0.1:${port}/storage-program/search?q=program%20${i + 1}&exact=true`);
      const { programs } = (await found.json()) as { programs: readonly { readonly storageAddress: string }[] };
      return [`a program of ${bytes} bytes`, `/storage-program/${programs[0]!.storageAddress}`] as const;
    }),
  );
  return [
    ...programs,
    ["the root of the commitment tree", "/zk/merkle-root"],
    ["a page of an owner's programs", `/storage-program/owner/${owner}?limit=50`],
    ["a proof of a program", `/state/proof?storageAddress=${programs[0]![1].split("/").at(-1)}`],
  ];
}

async function compareWithWhole(
  name: string,
  path: string,
  { node, before }: { readonly node: NodeProcess; readonly before: NodeProcess | undefined },
  rounds: number,
  seconds: number,
): Promise<Row> {
  const etag = (await fetch(`http://127.0.0.1:${node.port}${path}`)).headers.get("etag")!;
  const runs = [
    { server: node, load: notModifiedLoad(path, etag) },
    { server: node, load: httpLoad(path) },
    ...(before === undefined ? [] : [{ server: before, load: httpLoad(path) }]),
  ];
  const [unchanged, whole, old] = (await measureInTurns(runs, rounds, seconds)).map((measured) => ({
    cpuUs: median(measured.map(({ cpuUsPerRequest }) => cpuUsPerRequest)),
    rate: median(measured.map(({ requestsPerSecond }) => requestsPerSecond)),
  }));
  return {
    name: `304 for ${name}`,
    baseline: "200",
    ratio: whole!.cpuUs / unchanged!.cpuUs,
    figures: {
      "cpu µs/request": unchanged!.cpuUs,
      "200 cpu µs/request": whole!.cpuUs,
      ...(old && { "200 cpu µs/request before": old.cpuUs }),
      "requests/s": unchanged!.rate,
      "200 requests/s": whole!.rate,
      ...(old && { "200 requests/s before": old.rate }),
    },
  };
}

/** Creates a load of requests that name the current entity tag. */
function notModifiedLoad(path: string, etag: string): Load {
  return async (port, seconds) => {
    const url = `http://127.0.0.1:${port}${path}`;
    const headers = { "if-none-match": etag };
    const result = await autocannon({ url, connections: concurrency, duration: seconds, headers });
    if (result.errors > 0 || result["3xx"] !== result.requests.total) {
      throw new Error(`${path}: of ${result.requests.total} answers ${result["3xx"]} were 304.`);
    }
    return {
      requests: result.requests.total,
      requestsPerSecond: result.requests.total / result.duration,
      p99Ms: result.latency.p99,
    };
  };
}
