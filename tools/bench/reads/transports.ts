/**
 * Measures each protocol over each HTTP version, with and without identity, against bare servers with the same
 * responses.
 */
import { generateKeyPairSync, sign } from "node:crypto";
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { identityMessage } from "../../../src/edge/identity.js";
import type { ConstantAnswer } from "../servers/bare-server.js";
import { type Baseline, type Builds, compareBuilds } from "../load/compare.js";
import { askHttp2, faultOf, grpcCall, type Http2Request, openSession } from "../load/http2-client.js";
import { http2Load, httpLoad, type HttpRequest, type Load } from "../load/load.js";
import type { BenchContext, Result, Row } from "../row.js";

const getVersion = "/gatehouse.info.v1.InfoService/GetVersion";
const getHealth = "/gatehouse.health.v1.HealthService/GetHealth";

interface ProtocolSubject {
  readonly name: string;
  readonly load: Load;
  /** Sends one request. Returns the responses for the bare servers, or the reason if the node does not respond. */
  readonly ask: (port: number) => Promise<{ readonly baselines: readonly Baseline[] } | { readonly fault: string }>;
}

/** Measures each protocol. */
export async function benchTransports({ node, before, rounds, seconds, say }: BenchContext) {
  const rows: Row[] = [];
  for (const subject of subjects(await signedHeaders(node.port))) {
    say(subject.name);
    rows.push(...(await measureServed(subject, { after: node, before }, rounds, seconds)));
  }
  return rows;
}

/** Returns a note instead of figures if a build does not serve the protocol. */
async function measureServed(
  subject: ProtocolSubject,
  builds: Builds,
  rounds: number,
  seconds: number,
): Promise<Row[]> {
  const { name, load, ask } = subject;
  const { after, before } = builds;
  const now = await ask(after.port);
  const then = before && (await ask(before.port));
  const notServed = (fault: string): Result => ({ figures: {}, note: `not served: ${fault}` });
  if ("fault" in now) {
    const missing = { name, ...notServed(now.fault) };
    if (before === undefined || then === undefined) {
      return [missing];
    }
    if ("fault" in then) {
      return [{ ...missing, before: notServed(then.fault) }];
    }
    const rows = await compareBuilds({ name, load, baselines: then.baselines }, { after: before }, rounds, seconds);
    return rows.map(({ baseline, ratio, figures }) => ({
      ...missing,
      baseline: baseline!,
      before: { ratio: ratio!, figures },
    }));
  }
  const { baselines } = now;
  if (then !== undefined && "fault" in then) {
    const rows = await compareBuilds({ name, load, baselines }, { after }, rounds, seconds);
    return rows.map((row) => ({ ...row, before: notServed(then.fault) }));
  }
  return await compareBuilds({ name, load, baselines }, builds, rounds, seconds);
}

function subjects(identity: Readonly<Record<string, string>>): ProtocolSubject[] {
  const posted = (contentType: string, body: Buffer): HttpRequest => ({
    method: "POST",
    headers: { "content-type": contentType },
    body,
  });
  const envelope = Buffer.alloc(5);
  const unary = [
    ["Connect JSON", posted("application/json", Buffer.from("{}"))],
    ["Connect binary", posted("application/proto", Buffer.alloc(0))],
    ["gRPC-Web", posted("application/grpc-web+proto", envelope)],
  ] as const;
  const plainPaths = ["/version", "/health", "/info"];
  return [
    ...plainPaths.map((path) => overHttp1(`GET ${path}`, path)),
    overHttp1("GET /version, signed", "/version", { headers: identity }),
    ...plainPaths.map((path) => overHttp2(`GET ${path}, h2`, path)),
    overHttp2("GET /version, signed, h2", "/version", { headers: identity }),
    grpc("gRPC GetHealth", getHealth),
    grpc("gRPC GetVersion", getVersion),
    grpc("gRPC GetVersion, signed", getVersion, identity),
    ...unary.map(([name, request]) => overHttp1(`${name} GetVersion`, getVersion, request)),
    ...unary.map(([name, request]) => overHttp2(`${name} GetVersion, h2`, getVersion, request)),
  ];
}

function overHttp1(name: string, path: string, request: HttpRequest = {}): ProtocolSubject {
  return {
    name,
    load: httpLoad(path, request),
    async ask(port) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, request as RequestInit);
      const body = new Uint8Array(await response.arrayBuffer());
      const type = response.headers.get("content-type");
      const fault = response.ok ? typeFault(request, type) : String(response.status);
      return fault === undefined ? { baselines: [{ kind: "http", answers: { [path]: body } }] } : { fault };
    },
  };
}

/** Returns an error message if the content type of the response is not that of the request. */
function typeFault({ headers }: HttpRequest, type: string | null | undefined): string | undefined {
  const asked = headers?.["content-type"];
  return asked === undefined || type?.split(";")[0] === asked ? undefined : `answered as ${type}`;
}

function overHttp2(name: string, path: string, asked: HttpRequest = {}): ProtocolSubject {
  const { method = "GET", headers = {}, body } = asked;
  const request: Http2Request = {
    headers: { ":method": method, ":path": path, ...headers },
    ...(body !== undefined && { body }),
  };
  return {
    name,
    load: http2Load(request),
    async ask(port) {
      const { fault: failed, answer } = await askOnce(port, request);
      const fault = failed ?? typeFault(asked, answer.headers["content-type"] as string | undefined);
      return fault === undefined ? { baselines: [{ kind: "http2", answers: { [path]: answer } }] } : { fault };
    },
  };
}

/** Measures a call with an empty message, against constants of node:http2 and of grpc-js. */
function grpc(name: string, path: string, metadata: Readonly<Record<string, string>> = {}): ProtocolSubject {
  const request = grpcCall(path, metadata);
  return {
    name,
    load: http2Load(request),
    async ask(port) {
      const { fault, answer } = await askOnce(port, request);
      if (fault !== undefined) {
        return { fault };
      }
      const message = answer.body.subarray(5);
      return {
        baselines: [
          { kind: "http2", answers: { [path]: answer } },
          { kind: "grpc", answers: { [path]: message } },
        ],
      };
    },
  };
}

async function askOnce(
  port: number,
  request: Http2Request,
): Promise<{ fault: string | undefined; answer: ConstantAnswer }> {
  const session = await openSession(port);
  try {
    const { headers, trailers, body } = await askHttp2(session, request);
    const answer = { headers: constantOf(headers), trailers: trailers && constantOf(trailers), body };
    return { fault: faultOf({ headers, trailers }), answer };
  } finally {
    session.close();
  }
}

/** Returns the headers that a server can repeat; node:http2 writes the date itself. */
function constantOf(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const { date: _, ...rest } = headers;
  return Object.fromEntries(Object.entries(rest));
}

/** Returns identity headers for the network of the node. They are signed once, and are valid for five minutes. */
async function signedHeaders(port: number): Promise<Record<string, string>> {
  const head = await fetch(`http://127.0.0.1:${port}/chain/head`);
  const { genesisHash: network } = (await head.json()) as { readonly genesisHash: string };
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const identity = `ed25519:0x${publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`;
  const timestamp = String(Date.now());
  const signature = sign(null, identityMessage(identity, timestamp, network), privateKey);
  return { identity, timestamp, network, signature: `0x${signature.toString("hex")}` };
}
