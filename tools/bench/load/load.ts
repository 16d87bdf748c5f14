/** Applies load to a server with inexpensive clients, and measures the cost for the server. */
import type cannon from "autocannon";
import type { Options, Result } from "autocannon";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { ask } from "../../../test/helpers/wire/plain-client.js";
import { askHttp2, faultOf, type Http2Request, openSession } from "./http2-client.js";
import type { ServerProcess } from "../servers/server-process.js";
import { percentile } from "../statistics.js";

/** Result of one measurement. */
export interface Measurement {
  readonly requestsPerSecond: number;
  /** CPU time of the server per request, in microseconds. */
  readonly cpuUsPerRequest: number;
  readonly p99Ms: number;
}

/** Kind of load. Runs for some seconds; rejects if a response is not the expected one. */
export type Load = (
  port: number,
  seconds: number,
) => Promise<Omit<Measurement, "cpuUsPerRequest"> & { readonly requests: number }>;

/** Applies load to a server. The generator is loaded on first use, because only `npm run tools` installs it. */
export async function autocannon(options: Options): Promise<Result> {
  const run = createRequire(resolve("tools/packages/package.json"))("autocannon") as typeof cannon;
  return await run(options);
}

/** Number of concurrent requests. */
export const concurrency = 32;

/** Applies a load to the server, and measures its CPU time. */
async function measure(server: ServerProcess, load: Load, seconds: number): Promise<Measurement> {
  const before = await server.usage();
  const { requests, ...figures } = await load(server.port, seconds);
  const after = await server.usage();
  return { ...figures, cpuUsPerRequest: (after.cpuUs - before.cpuUs) / requests };
}

/** Applies loads to servers alternately in each round, after a second of each. Returns the measurements of each. */
export async function measureInTurns(
  runs: readonly { readonly server: ServerProcess; readonly load: Load }[],
  rounds: number,
  seconds: number,
): Promise<Measurement[][]> {
  const measured = runs.map((): Measurement[] => []);
  for (const { server, load } of runs) {
    await load(server.port, 1);
  }
  for (let round = 0; round < rounds; round++) {
    for (const [i, { server, load }] of runs.entries()) {
      measured[i]!.push(await measure(server, load, seconds));
    }
  }
  return measured;
}

/** Sends GET requests in rotation over the paths, over HTTP/1.1 with keep-alive. */
export function randomLoad(path: () => string): Load {
  return async (port, seconds) => {
    const result = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections: concurrency,
      duration: seconds,
      requests: [{ setupRequest: (request) => ({ ...request, path: path() }) }],
    });
    return figuresOf("random paths", result);
  };
}

/** Sends GET requests over HTTP/1.1, with a new connection each. */
export function newConnectionLoad(path: string): Load {
  return (port, seconds) => latencyLoad(seconds, () => getOnce(port, path));
}

async function getOnce(port: number, path: string): Promise<void> {
  const { status } = await ask(port, path);
  if (status !== 200) {
    throw new Error(`${path} was answered with ${status}.`);
  }
}

/** Repeats an operation in concurrent loops. */
async function latencyLoad(seconds: number, once: (caller: number) => Promise<void>): ReturnType<Load> {
  const latencies: number[] = [];
  const start = performance.now();
  const end = start + seconds * 1000;
  const caller = async (n: number): Promise<void> => {
    while (performance.now() < end) {
      const sent = performance.now();
      await once(n);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, n) => caller(n)));
  const elapsed = (performance.now() - start) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    requestsPerSecond: latencies.length / elapsed,
    p99Ms: percentile(latencies, 0.99),
  };
}

function figuresOf(path: string, result: Result): Awaited<ReturnType<Load>> {
  if (result.errors > 0 || result.non2xx > 0) {
    throw new Error(`${path}: ${result.errors} requests failed, ${result.non2xx} were answered with an error.`);
  }
  return {
    requests: result.requests.total,
    requestsPerSecond: result.requests.total / result.duration,
    p99Ms: result.latency.p99,
  };
}

/** Request to send. Default: GET without a body. */
export interface HttpRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** Sends requests over HTTP/1.1 with keep-alive. */
export function httpLoad(path: string, request: HttpRequest = {}): Load {
  return async (port, seconds) => {
    const url = `http://127.0.0.1:${port}${path}`;
    const result = await autocannon({ url, connections: concurrency, duration: seconds, ...request });
    return figuresOf(path, result);
  };
}

const sessions = 4;

/** Repeats one request over a few HTTP/2 sessions. */
export function http2Load(request: Http2Request): Load {
  return async (port, seconds) => {
    const clients = await Promise.all(Array.from({ length: sessions }, () => openSession(port)));
    try {
      return await latencyLoad(seconds, async (caller) => {
        const fault = faultOf(await askHttp2(clients[caller % sessions]!, request));
        if (fault !== undefined) {
          throw new Error(`${String(request.headers[":path"])} was answered with ${fault}.`);
        }
      });
    } finally {
      clients.forEach((client) => client.close());
    }
  };
}
