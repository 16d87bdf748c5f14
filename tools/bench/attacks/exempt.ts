/** Floods of requests that no rate limits, such as probes, and of those that the node rejects early. */
import type { Field } from "../../../test/helpers/wire/hpack.js";
import { grpcMessage } from "../../../test/helpers/wire/http2-frames.js";
import type { Attack, Attacks } from "./attack.js";
import {
  type Connections,
  floodAttack,
  openStreams,
  pipeline,
  publicDoor,
  repeated,
  type StreamFrames,
  streamOf,
} from "./flood.js";

/** Request of a flood. */
interface FloodRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const get = (path: string): FloodRequest => ({ method: "GET", path });

/** Requests by the name in an attack. */
export const floodRequests: Readonly<Record<string, FloodRequest>> = {
  "GET /health": get("/health"),
  "GET /livez": get("/livez"),
  "GET /readyz": get("/readyz"),
  "GET /health/subsystems": get("/health/subsystems"),
  "GET /version": get("/version"),
  "GET /": get("/"),
  "GET /chain/head": get("/chain/head"),
  "GET of an unknown path": get("/nothing/here"),
  "OPTIONS /chain/head": {
    method: "OPTIONS",
    path: "/chain/head",
    headers: { origin: "http://a", "access-control-request-method": "GET" },
  },
  "DELETE /livez (405)": { method: "DELETE", path: "/livez" },
  "POST with a body that is too long (413)": {
    method: "POST",
    path: "/chain/transactions",
    headers: { "content-type": "application/json", "content-length": "99999999" },
  },
};

/** Writes a request as text of HTTP/1.1. */
export function textOf({ method, path, headers = {} }: FloodRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\nHost: a\r\n${lines.join("")}\r\n`;
}

/** Prepares a request as a stream of HTTP/2. */
export function framesOf({ method, path, headers = {} }: FloodRequest, body?: Buffer, ends = true): StreamFrames {
  const pseudo: Field[] = [
    [":method", method],
    [":scheme", "http"],
    [":authority", "a"],
    [":path", path],
  ];
  return streamOf([...pseudo, ...Object.entries(headers)], body, ends);
}

/** Streams of a connection: below the node's limit on each connection. */
const streams = 100;

/** Sends a request over all connections, pipelined or as streams. */
function pipelined(request: FloodRequest, connections: Connections): Attack {
  return floodAttack(async (target, signal) =>
    target.transport.http === 1
      ? await pipeline(publicDoor(target), signal, [repeated(textOf(request))], connections)
      : await openStreams(target, publicDoor(target), signal, framesOf(request), { ...connections, streams }),
  );
}

/** Sends a call over HTTP/2. */
function called(request: FloodRequest, body: Buffer | undefined, count: number): Attack {
  const frames = framesOf(request, body);
  return floodAttack((target, signal) => openStreams(target, publicDoor(target), signal, frames, { count, streams }), {
    transport: { http: 2 },
  });
}

const grpcHealth = (method: string): FloodRequest => ({
  method: "POST",
  path: `/grpc.health.v1.Health/${method}`,
  headers: { "content-type": "application/grpc", te: "trailers" },
});
const emptyMessage = grpcMessage(Buffer.alloc(0));
const longHeader = { method: "GET", path: "/livez", headers: { x: "x".repeat(1_024) } };

const pipelines = Object.entries(floodRequests).flatMap(([name, request]) =>
  [1, 16, 64].flatMap((count) =>
    [true, false].map((reads): [string, Attack] => [
      `pipelined ${name}, ${count} connection${count === 1 ? "" : "s"}, ${reads ? "read" : "unread"}`,
      pipelined(request, { count, reads }),
    ]),
  ),
);

export const exemptAttacks: Attacks = {
  ...Object.fromEntries(pipelines),
  "headers of 1 KB over HTTP/2, GET /livez, 4 connections": called(longHeader, undefined, 4),
  "headers of 1 KB over HTTP/2, GET /livez, 8 connections": called(longHeader, undefined, 8),
  "gRPC health Check, 8 connections": called(grpcHealth("Check"), emptyMessage, 8),
  "gRPC health Watch, 8 connections": called(grpcHealth("Watch"), emptyMessage, 8),
};
