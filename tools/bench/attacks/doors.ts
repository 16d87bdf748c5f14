/** Floods of the other ports, of TLS, and of addresses that the operator trusts or exempts. */
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { createCertificate } from "../../../src/base/crypto/certificate.js";
import { grpcMessage } from "../../../test/helpers/wire/http2-frames.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import { type Attack, type Attacks, attackerAddress, repeat, type Target } from "./attack.js";
import { framesOf, textOf } from "./exempt.js";
import {
  type Door,
  floodAttack,
  openAndLeave,
  openStreams,
  pipeline,
  publicDoor,
  repeated,
  sendAndWait,
} from "./flood.js";

const internalDoor = ({ omniPort }: Target): Door => ({
  port: omniPort,
  tls: true,
  credentials: createCertificate(newKey().privateKey),
});

/** Pipelines requests to a plain port, over 16 connections. */
function portPipeline(doorPort: (target: Target) => number, text: string): Attack {
  const door = (target: Target): Door => ({ port: doorPort(target), tls: false });
  return floodAttack((target, signal) => pipeline(door(target), signal, [repeated(text)], { count: 16 }));
}

const toolCall = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "info_getVersion" } });
const mcpRequest =
  textOf({
    method: "POST",
    path: "/mcp",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "content-length": String(toolCall.length),
    },
  }).replace("Host: a", "Host: 127.0.0.1") + toolCall;

/** Returns the first bytes of a TLS client. */
export async function clientHello(): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _, done) {
        resolve(chunk);
        done();
      },
    });
    connectTls({ socket: wire, ALPNProtocols: ["h2", "http/1.1"] }).on("error", () => undefined);
  });
}

/** Handshakes on a port: those that stop after the first flight cost the node most of a handshake, and its client nothing. */
function handshakes(name: string, door: (target: Target) => Door): Attacks {
  const plain = (target: Target): Door => ({ ...door(target), tls: false });
  const transport = { tls: true };
  return {
    [`TLS handshakes of ${name}, stopped after the first flight`]: floodAttack(
      async (target, signal) =>
        await openAndLeave(plain(target), signal, await clientHello(), { count: 200, addresses: 4 }),
      { transport },
    ),
    [`TLS handshakes of ${name}, half of a first flight`]: floodAttack(
      async (target, signal) => {
        const hello = await clientHello();
        const half = hello.subarray(0, hello.length / 2);
        return await sendAndWait(plain(target), signal, half, { count: 2_000, addresses: 9 });
      },
      { transport },
    ),
    [`TLS handshakes of ${name}, complete`]: floodAttack(
      async (target, signal) => {
        let complete = 0;
        const { port, credentials } = door(target);
        await repeat(16, signal, async () => {
          const to = { port, host: "127.0.0.1", localAddress: attackerAddress(0), ...credentials };
          const socket = connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
          const isDone = await new Promise<boolean>((resolve) => {
            socket.once("secureConnect", () => resolve(true)).once("error", () => resolve(false));
          });
          socket.destroy();
          complete += isDone ? 1 : 0;
          // A rejected connection fails at once.
          await sleep(isDone ? 0 : 20);
        });
        return { "complete handshakes": complete };
      },
      { transport },
    ),
  };
}

/** Number of writes with client addresses of their own, of some hundred requests each. */
const proxyWrites = 16;

/** Requests that a proxy forwards, each for another client. */
function forwarded(path: string): Attack {
  let client = 0;
  const next = (): string => {
    client++;
    const headers = { "x-forwarded-for": `198.18.${(client >> 8) & 255}.${client & 255}` };
    return textOf({ method: "GET", path, headers });
  };
  const requestsEach = Math.floor(repeated(next()).length / next().length);
  const writes = (): Buffer[] =>
    Array.from({ length: proxyWrites }, () => Buffer.from(Array.from({ length: requestsEach }, next).join("")));
  return floodAttack((target, signal) => pipeline(publicDoor(target), signal, writes(), { count: 16 }), {
    flags: ["--trusted-proxies", attackerAddress(0)],
    transport: { http: 1 },
  });
}

/** Requests of an address that is exempt from the rate limit. */
function exempt(path: string): Attack {
  const text = textOf({ method: "GET", path });
  return floodAttack((target, signal) => pipeline(publicDoor(target), signal, [repeated(text)], { count: 16 }), {
    flags: ["--rate-limit-exempt", attackerAddress(0)],
    transport: { http: 1 },
  });
}

export const doorAttacks: Attacks = {
  "metrics port, pipelined GET /metrics": portPipeline(
    ({ metricsPort }) => metricsPort,
    textOf({ method: "GET", path: "/metrics" }),
  ),
  "MCP port, pipelined calls": portPipeline(({ mcpPort }) => mcpPort, mcpRequest),
  "internal port, gRPC health Check": floodAttack((target, signal) => {
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const check = { method: "POST", path: "/grpc.health.v1.Health/Check", headers };
    const frames = framesOf(check, grpcMessage(Buffer.alloc(0)));
    return openStreams(target, internalDoor(target), signal, frames, { count: 8, streams: 100 });
  }),
  ...handshakes("the public port", publicDoor),
  ...handshakes("the internal port", internalDoor),
  "a trusted proxy, GET /health for thousands of clients": forwarded("/health"),
  "a trusted proxy, GET /chain/head for thousands of clients": forwarded("/chain/head"),
  "an exempt address, pipelined GET /health": exempt("/health"),
  "an exempt address, pipelined GET /chain/head": exempt("/chain/head"),
};
