/** Routes over HTTP and gRPC, each against a bare server that answers the same bytes. */
import { connect } from "node:http2";
import { grpcLoad, callEmpty, httpLoad, type Load, measure, type Measurement } from "./load.js";
import type { BenchContext, Row } from "./row.js";
import { type ServerProcess, startBare } from "./server-process.js";
import { median } from "./statistics.js";

const paths = ["/version", "/health", "/info"];
const calls = ["/gatehouse.health.v1.HealthService/GetHealth"];

/** Measures the node and the bare server in turns, round by round, and gives the medians. */
export async function benchTransports({ node, rounds, seconds, say }: BenchContext): Promise<Row[]> {
  const pages = Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await fetchBytes(node.port, path)] as const)),
  );
  const session = connect(`http://127.0.0.1:${node.port}`);
  const messages = Object.fromEntries(
    await Promise.all(calls.map(async (path) => [path, await callEmpty(session, path)] as const)),
  );
  session.close();
  const bareHttp = await startBare("http", pages);
  const bareGrpc = await startBare("grpc", messages);
  const rows: Row[] = [];
  try {
    for (const path of paths) {
      say(`GET ${path}`);
      rows.push(await compare(`GET ${path}`, "bare node:http", node, bareHttp, httpLoad(path), rounds, seconds));
    }
    for (const path of calls) {
      const name = `gRPC ${path.split("/").at(-1)!}`;
      say(name);
      rows.push(await compare(name, "bare grpc-js", node, bareGrpc, grpcLoad(path), rounds, seconds));
    }
  } finally {
    await Promise.all([bareHttp.stop(), bareGrpc.stop()]);
  }
  return rows;
}

async function compare(
  name: string,
  baseline: string,
  node: ServerProcess,
  bare: ServerProcess,
  load: Load,
  rounds: number,
  seconds: number,
): Promise<Row> {
  await load(node.port, 1);
  await load(bare.port, 1);
  const ours: Measurement[] = [];
  const theirs: Measurement[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(await measure(node, load, seconds));
    theirs.push(await measure(bare, load, seconds));
  }
  const middle = (list: readonly Measurement[], key: keyof Measurement): number => median(list.map((m) => m[key]));
  return {
    name,
    baseline,
    ratio: middle(theirs, "cpuUsPerRequest") / middle(ours, "cpuUsPerRequest"),
    figures: {
      "requests/s": middle(ours, "requestsPerSecond"),
      "requests/s ratio": middle(ours, "requestsPerSecond") / middle(theirs, "requestsPerSecond"),
      "cpu µs/request": middle(ours, "cpuUsPerRequest"),
      "bare cpu µs/request": middle(theirs, "cpuUsPerRequest"),
      "p99 ms": middle(ours, "p99Ms"),
    },
  };
}

async function fetchBytes(port: number, path: string): Promise<Uint8Array> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  if (!response.ok) {
    throw new Error(`${path} was answered with ${response.status}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}
