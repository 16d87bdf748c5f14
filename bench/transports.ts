/** Each protocol, with and without identity, against bare servers that answer the same bytes. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { connect } from "node:http2";
import { callEmpty, grpcLoad, httpLoad, type HttpRequest, type Load, measure, type Measurement } from "./load.js";
import type { BenchContext, Row } from "./row.js";
import { type ServerProcess, startBare } from "./server-process.js";
import { median } from "./statistics.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const getHealth = "/gatehouse.health.v1.HealthService/GetHealth";

interface Subject {
  readonly name: string;
  readonly kind: "http" | "grpc";
  readonly path: string;
  readonly load: Load;
  /** The request whose answer the bare server gives. */
  readonly request: HttpRequest;
}

/** Measures the node and the bare server in turns, round by round, and gives the medians. */
export async function benchTransports({ node, rounds, seconds, say }: BenchContext): Promise<Row[]> {
  const identity = signedHeaders();
  const plain = (path: string): Subject => ({
    name: `GET ${path}`,
    kind: "http",
    path,
    load: httpLoad(path),
    request: {},
  });
  const posted = (name: string, type: string, body: Buffer): Subject => {
    const request = { method: "POST", headers: { "Content-Type": type }, body } as const;
    return { name: `${name} GetVersion`, kind: "http", path: getVersion, load: httpLoad(getVersion, request), request };
  };
  const native = (path: string): Subject => ({
    name: `gRPC ${path.split("/").at(-1)!}`,
    kind: "grpc",
    path,
    load: grpcLoad(path),
    request: {},
  });
  const emptyEnvelope = Buffer.alloc(5);
  const subjects: Subject[] = [
    plain("/version"),
    plain("/health"),
    plain("/info"),
    { ...plain("/version"), name: "GET /version, signed", load: httpLoad("/version", { headers: identity }) },
    native(getHealth),
    native(getVersion),
    { ...native(getVersion), name: "gRPC GetVersion, signed", load: grpcLoad(getVersion, identity) },
    posted("Connect JSON", "application/json", Buffer.from("{}")),
    posted("Connect binary", "application/proto", Buffer.alloc(0)),
    posted("gRPC-Web", "application/grpc-web+proto", emptyEnvelope),
  ];
  const rows: Row[] = [];
  for (const subject of subjects) {
    say(subject.name);
    const answer =
      subject.kind === "http" ? await httpAnswer(node.port, subject) : await grpcAnswer(node.port, subject.path);
    const bare = await startBare(subject.kind, { [subject.path]: answer });
    try {
      rows.push(await compare(subject, node, bare, rounds, seconds));
    } finally {
      await bare.stop();
    }
  }
  return rows;
}

async function compare(
  { name, kind, load }: Subject,
  node: ServerProcess,
  bare: ServerProcess,
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
}

async function httpAnswer(port: number, { path, request }: Subject): Promise<Uint8Array> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, request as RequestInit);
  if (!response.ok) {
    throw new Error(`${path} was answered with ${response.status}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

async function grpcAnswer(port: number, path: string): Promise<Uint8Array> {
  const session = connect(`http://127.0.0.1:${port}`);
  const message = await callEmpty(session, path);
  session.close();
  return message;
}

/** The identity headers of a caller, signed once: they serve every request for five minutes. */
function signedHeaders(): Record<string, string> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const identity = `ed25519:0x${publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`;
  const timestamp = String(Date.now());
  const digest = createHash("sha256").update(`${identity}:${timestamp}`).digest("hex");
  return { identity, timestamp, signature: `0x${sign(null, Buffer.from(digest), privateKey).toString("hex")}` };
}
