/** Requests of the judge, over the transport of the variant. */
import { Agent, request as requestHttp } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import { connect as connectPlain } from "node:net";
import { connect as connectTls } from "node:tls";
import type { PlainRequest } from "../../../test/helpers/wire/plain-client.js";

/** Transport of clients. */
export interface Transport {
  readonly http: 1 | 2;
  readonly tls: boolean;
}

/** Request with its source address. */
export interface SourcedRequest extends PlainRequest {
  readonly path: string;
  readonly localAddress: string;
  /** Time limit in milliseconds. */
  readonly timeoutMs: number;
  /** True to reuse connections. Default: a new connection for each request. */
  readonly isKept?: boolean;
}

/** Complete response, or the lack of one. */
export interface Outcome {
  /** Undefined if the connection failed or the time is over. */
  readonly status: number | undefined;
  readonly hasRetryAfter: boolean;
  readonly body: Buffer;
}

const noOutcome: Outcome = { status: undefined, hasRetryAfter: false, body: Buffer.alloc(0) };
/** The certificate of the measured node is its own. */
const rejectUnauthorized = false;
/** Limit on the kept connections of an address, so that late responses do not delay later requests. */
const maxSockets = 64;

export type Send = (request: SourcedRequest) => Promise<Outcome>;

/** Creates the client. */
export function createClient(port: number, { http, tls }: Transport): Send {
  return http === 1 ? createHttp1(port, tls) : createHttp2(port, tls);
}

function createHttp1(port: number, tls: boolean): Send {
  const kept = tls ? new TlsAgent({ keepAlive: true, maxSockets }) : new Agent({ keepAlive: true, maxSockets });
  const open = tls ? requestHttps : requestHttp;
  return async ({ path, localAddress, timeoutMs, isKept = false, method = "GET", headers = {}, body }) =>
    await new Promise((resolve) => {
      const agent = isKept ? kept : false;
      const options = { host: "127.0.0.1", port, localAddress, path, method, headers, agent, rejectUnauthorized };
      const request = open(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("end", () => {
          const hasRetryAfter = response.headers["retry-after"] !== undefined;
          resolve({ status: response.statusCode, hasRetryAfter, body: Buffer.concat(chunks) });
        });
      });
      const timer = setTimeout(() => request.destroy(), timeoutMs);
      request
        .on("error", () => undefined)
        .once("close", () => {
          clearTimeout(timer);
          resolve(noOutcome);
        });
      request.end(body);
    });
}

function createHttp2(port: number, tls: boolean): Send {
  const sessions = new Map<string, ClientHttp2Session>();
  const connect = (localAddress: string): ClientHttp2Session => {
    const to = { host: "127.0.0.1", port, localAddress };
    const createConnection = () =>
      tls ? connectTls({ ...to, rejectUnauthorized, ALPNProtocols: ["h2"] }) : connectPlain(to);
    return connectHttp2(`http${tls ? "s" : ""}://127.0.0.1`, { createConnection }).on("error", () => undefined);
  };
  const keptFor = (localAddress: string): ClientHttp2Session => {
    const open = sessions.get(localAddress);
    if (open !== undefined && !open.closed && !open.destroyed) {
      return open;
    }
    const session = connect(localAddress);
    sessions.set(localAddress, session);
    return session;
  };
  return async ({ path, localAddress, timeoutMs, isKept = false, method = "GET", headers = {}, body }) =>
    await new Promise((resolve) => {
      const session = isKept ? keptFor(localAddress) : connect(localAddress);
      const stream = session.request({ ":method": method, ":path": path, ...headers });
      const chunks: Buffer[] = [];
      let outcome = noOutcome;
      let hasEnded = false;
      stream.on("response", (fields) => {
        outcome = { ...outcome, status: fields[":status"], hasRetryAfter: fields["retry-after"] !== undefined };
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk)).once("end", () => (hasEnded = true));
      const timer = setTimeout(() => stream.destroy(), timeoutMs);
      stream
        .on("error", () => undefined)
        .once("close", () => {
          clearTimeout(timer);
          resolve(hasEnded ? { ...outcome, body: Buffer.concat(chunks) } : noOutcome);
          if (!isKept) {
            session.destroy();
          }
        });
      stream.end(body);
    });
}
