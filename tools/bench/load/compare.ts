/** Measures a node against bare servers that respond with the same bytes, and against another build of the node. */
import { httpLoad, type Load, measureInTurns, type Measurement } from "./load.js";
import type { BenchSettings, Result, Row } from "../row.js";
import type { BareAnswers } from "../servers/bare-server.js";
import { type ServerProcess, startBare } from "../servers/server-process.js";
import { median, ratioOfRounds } from "../statistics.js";

/** Bare server, and the load to apply to it. */
export type Baseline = BareAnswers & {
  /** Default: the load of the subject. */
  readonly load?: Load;
};

/** Subject of a comparison. */
export interface Subject {
  readonly name: string;
  /** Load to apply to the node. */
  readonly load: Load;
  /** Baselines; each produces a row. */
  readonly baselines: readonly Baseline[];
}

/** Running builds of the node. */
export interface Builds {
  readonly after: ServerProcess;
  /** Other build; undefined if there is only one. */
  readonly before?: ServerProcess | undefined;
}

/** Measures reads of a node, each against a bare HTTP server that responds with the same bytes to the path. */
export async function compareReads(
  subjects: readonly (readonly [name: string, path: string, load: Load])[],
  node: ServerProcess,
  { rounds, seconds, say }: BenchSettings,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, path, load] of subjects) {
    say(name);
    const answers = { [path]: await httpAnswer(node.port, path) };
    const baselines: Baseline[] = [{ kind: "http", answers, load: httpLoad(path) }];
    rows.push(...(await compareBuilds({ name, load, baselines }, { after: node }, rounds, seconds)));
  }
  return rows;
}

/** Measures builds and bare servers alternately in each round. Returns a row of medians for each baseline. */
export async function compareBuilds(
  { name, load, baselines }: Subject,
  { after, before }: Builds,
  rounds: number,
  seconds: number,
): Promise<Row[]> {
  const bare: ServerProcess[] = [];
  try {
    for (const baseline of baselines) {
      bare.push(await startBare(baseline));
    }
    const nodes = before === undefined ? [after] : [after, before];
    const runs = await measureInTurns(
      [
        ...nodes.map((server) => ({ server, load })),
        ...bare.map((server, i) => ({ server, load: baselines[i]!.load ?? load })),
      ],
      rounds,
      seconds,
    );
    return baselines.map(({ kind }, i) => {
      const theirs = runs[nodes.length + i]!;
      const row = { name, baseline: bareNames[kind], ...resultOf(runs[0]!, theirs) };
      return before === undefined ? row : { ...row, before: resultOf(runs[1]!, theirs) };
    });
  } finally {
    await Promise.all(bare.map((server) => server.stop()));
  }
}

const bareNames = { http: "bare node:http", http2: "bare node:http2", grpc: "bare grpc-js" } as const;

function resultOf(ours: readonly Measurement[], theirs: readonly Measurement[]): Result {
  const middle = (list: readonly Measurement[], key: keyof Measurement): number => median(list.map((m) => m[key]));
  return {
    ...ratioOfRounds(
      theirs.map((m) => m.cpuUsPerRequest),
      ours.map((m) => m.cpuUsPerRequest),
    ),
    figures: {
      "requests/s": middle(ours, "requestsPerSecond"),
      "requests/s ratio": middle(ours, "requestsPerSecond") / middle(theirs, "requestsPerSecond"),
      "cpu µs/request": middle(ours, "cpuUsPerRequest"),
      "bare cpu µs/request": middle(theirs, "cpuUsPerRequest"),
      "p99 ms": middle(ours, "p99Ms"),
    },
  };
}

/** Returns the body of a response over HTTP. Rejects if the status is an error. */
export async function httpAnswer(port: number, path: string, request: RequestInit = {}): Promise<Uint8Array> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, request);
  if (!response.ok) {
    throw new Error(`${path} was answered with ${response.status}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}
