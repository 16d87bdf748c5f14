/** The node against a bare server that answers the same bytes. */
import { type Load, measure, type Measurement } from "./load.js";
import type { Row } from "./row.js";
import { type ServerProcess, startBare } from "./server-process.js";
import { median } from "./statistics.js";

/** What is compared. */
export interface Subject {
  readonly name: string;
  readonly kind: "http" | "grpc";
  /** What the bare server answers, by path. */
  readonly answers: Readonly<Record<string, Uint8Array>>;
  /** Load on the node. */
  readonly load: Load;
  /** Load on the bare server; that on the node when left out. */
  readonly bareLoad?: Load;
}

/** Measures the node and the bare server in turns, round by round, and gives the medians. */
export async function compare(
  { name, kind, answers, load, bareLoad = load }: Subject,
  node: ServerProcess,
  rounds: number,
  seconds: number,
): Promise<Row> {
  const bare = await startBare(kind, answers);
  try {
    await load(node.port, 1);
    await bareLoad(bare.port, 1);
    const ours: Measurement[] = [];
    const theirs: Measurement[] = [];
    for (let round = 0; round < rounds; round++) {
      ours.push(await measure(node, load, seconds));
      theirs.push(await measure(bare, bareLoad, seconds));
    }
    const middle = (list: readonly Measurement[], key: keyof Measurement): number => median(list.map((m) => m[key]));
    return {
      name,
      baseline: kind === "http" ? "bare node:http" : "bare grpc-js",
      ratio: middle(theirs, "cpuUsPerRequest") / middle(ours, "cpuUsPerRequest"),
      figures: {
        "requests/s": middle(ours, "requestsPerSecond"),
        "requests/s ratio": middle(ours, "requestsPerSecond") / middle(theirs, "requestsPerSecond"),
        "cpu µs/request": middle(ours, "cpuUsPerRequest"),
        "bare cpu µs/request": middle(theirs, "cpuUsPerRequest"),
        "p99 ms": middle(ours, "p99Ms"),
      },
    };
  } finally {
    await bare.stop();
  }
}

/** What a server answers to a request over HTTP. Rejects when it is an error. */
export async function httpAnswer(port: number, path: string, request: RequestInit = {}): Promise<Uint8Array> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, request);
  if (!response.ok) {
    throw new Error(`${path} was answered with ${response.status}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}
