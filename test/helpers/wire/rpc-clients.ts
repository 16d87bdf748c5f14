/** Clients of every rpc protocol, without code of the node. */
import { type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createGrpcWebTransport as createFetchingTransport } from "@connectrpc/connect-web";
import type { ServiceError } from "@grpc/grpc-js";
import { ErrorInfoSchema, type RetryInfo, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { connectGrpc } from "./grpc-client.js";
import {
  baseUrlOf,
  connectTransport,
  createAgent,
  createSessions,
  startTlsBridge,
  type Target,
  type TransportClient,
  type TransportName,
  transports,
} from "./transports.js";

/** The protocols of tests that cover all protocols. */
export const rpcProtocols = ["gRPC", "gRPC by Connect", "Connect JSON", "Connect binary", "gRPC-Web"] as const;

/** An rpc protocol of these tests. */
export type RpcProtocol = (typeof rpcProtocols)[number];

/** Any rpc protocol, including Connect GET, for rpcs without side effects, and gRPC-Web text. */
export type AnyRpcProtocol = RpcProtocol | "Connect GET" | "gRPC-Web text";

/** A client of one port and protocol. */
export interface RpcClient {
  call(method: DescMethod, request: object, headers?: Readonly<Record<string, string>>): Promise<Message>;
  /** Yields the messages of a server stream until the signal aborts. */
  stream(method: DescMethod, request: object, signal: AbortSignal): AsyncIterable<Message>;
  close(): unknown;
}

/** An error, as a client reads it. */
export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  /** Reason of the ErrorInfo detail. */
  readonly reason: string | undefined;
  /** Seconds of the RetryInfo detail. */
  readonly retryAfterS: number | undefined;
}

/** Creates a client for each protocol, over cleartext. */
export function connectEach(port: number): Record<RpcProtocol, RpcClient> {
  const connect = (protocol: RpcProtocol, name: TransportName): RpcClient => connectRpc(protocol, name, { port });
  return {
    gRPC: connect("gRPC", "HTTP/2 by prior knowledge"),
    "gRPC by Connect": connect("gRPC by Connect", "HTTP/2 by prior knowledge"),
    "Connect JSON": connect("Connect JSON", "HTTP/1.1"),
    "Connect binary": connect("Connect binary", "HTTP/1.1"),
    "gRPC-Web": connect("gRPC-Web", "HTTP/1.1"),
  };
}

/** Creates a client of a protocol over a transport. It connects on its first call. */
export function connectRpc(protocol: AnyRpcProtocol, name: TransportName, target: Target): RpcClient {
  if (protocol === "gRPC") {
    return connectGrpcJs(name, target);
  }
  if (protocol === "gRPC-Web text") {
    return connectGrpcWebText(connectTransport(name, target));
  }
  const { options, close } = connectionsOf(name, target);
  const transport = {
    "gRPC by Connect": createGrpcTransport,
    "Connect JSON": () => createConnectTransport({ ...options, useBinaryFormat: false }),
    "Connect binary": () => createConnectTransport({ ...options, useBinaryFormat: true }),
    "Connect GET": () => createConnectTransport({ ...options, useBinaryFormat: false, useHttpGet: true }),
    "gRPC-Web": () => createGrpcWebTransport(options),
  }[protocol](options as { baseUrl: string });
  return { ...overTransport(transport), close };
}

/** Options of Connect transports for connections. */
function connectionsOf(name: TransportName, target: Target) {
  const baseUrl = baseUrlOf(name, target);
  if (transports[name].http === "1.1") {
    const agent = createAgent(name, target);
    return { options: { baseUrl, httpVersion: "1.1", nodeOptions: { agent } } as const, close: () => agent.destroy() };
  }
  const sessionManager = createSessions(name, target);
  return { options: { baseUrl, httpVersion: "2", sessionManager } as const, close: () => sessionManager.abort() };
}

/** grpc-js offers only `h2` by ALPN. For other offers, its connection is forwarded over TLS. */
function connectGrpcJs(name: TransportName, target: Target): RpcClient {
  const { alpn } = transports[name];
  const isCarried = alpn !== undefined && alpn.length > 1;
  const bridge = isCarried ? startTlsBridge(target, alpn) : undefined;
  const connected = (async () => {
    const { port } = (await bridge) ?? target;
    return connectGrpc(port, isCarried ? undefined : target.ca);
  })();
  return {
    call: async (method, request, headers) =>
      (await connected).call(method as never, request as never, headers) as Promise<Message>,
    async *stream(method, request, signal) {
      yield* (await connected).stream(method as never, request as never, signal) as AsyncIterable<Message>;
    },
    close: async () => {
      (await connected).close();
      (await bridge)?.close();
    },
  };
}

/** gRPC-Web with base64 bodies, as in browsers without byte streams. */
function connectGrpcWebText(client: TransportClient): RpcClient {
  const type = "application/grpc-web-text";
  const fetchText: typeof fetch = async (url, init) => {
    const message = await new Response(init!.body).arrayBuffer();
    const { status, headers, body } = await client.open(
      new URL(String(url)).pathname,
      {
        method: "POST",
        headers: { ...Object.fromEntries(new Headers(init!.headers)), "content-type": type, accept: type },
        body: Buffer.from(message).toString("base64"),
      },
      init!.signal ?? undefined,
    );
    if (!String(headers["content-type"]).startsWith(type)) {
      throw new Error(`HTTP ${status}, ${headers["content-type"]}`);
    }
    const entries = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
    const answered = new Headers(entries);
    answered.set("content-type", "application/grpc-web+proto");
    return new Response(ReadableStream.from(decodeBase64(body)), { status, headers: answered });
  };
  return {
    ...overTransport(createFetchingTransport({ baseUrl: client.baseUrl, fetch: fetchText })),
    close: () => client.close(),
  };
}

/** Decodes four characters at a time, because each piece of base64 may be padded. */
async function* decodeBase64(body: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  let text = "";
  for await (const chunk of body) {
    text += chunk.toString("latin1");
    const complete = text.length - (text.length % 4);
    const groups = text.slice(0, complete).match(/[A-Za-z0-9+/]+={0,2}/g) ?? [];
    yield Buffer.concat(groups.map((group) => Buffer.from(group, "base64")));
    text = text.slice(complete);
  }
  if (text !== "") {
    throw new Error("The body ends within base64.");
  }
}

function overTransport(transport: Transport): Omit<RpcClient, "close"> {
  return {
    async call(method, request, headers) {
      const response = await transport.unary(method as never, undefined, 20_000, headers, request as never);
      return response.message as Message;
    },
    async *stream(method, request, signal) {
      const input = (async function* () {
        yield await Promise.resolve(request as never);
      })();
      const response = await transport.stream(method as never, signal, undefined, undefined, input);
      yield* response.message as AsyncIterable<Message>;
    },
  };
}

/** Returns the details of a rejected call. */
export function readFailure(error: unknown): RpcFailure {
  if (error instanceof ConnectError) {
    const [info] = error.findDetails(ErrorInfoSchema);
    const [retry] = error.findDetails(RetryInfoSchema);
    return { code: error.code, message: error.rawMessage, reason: info?.reason, retryAfterS: secondsOf(retry) };
  }
  if (!(error instanceof Error && "metadata" in error)) {
    throw error;
  }
  const { code, details, metadata } = error as ServiceError;
  const [packed] = metadata.get("grpc-status-details-bin");
  const status = packed === undefined ? undefined : fromBinary(StatusSchema, Buffer.from(packed as Buffer));
  const [info] = (status?.details ?? []).flatMap((detail) => anyUnpack(detail, ErrorInfoSchema) ?? []);
  const [retry] = (status?.details ?? []).flatMap((detail) => anyUnpack(detail, RetryInfoSchema) ?? []);
  return { code, message: details, reason: info?.reason, retryAfterS: secondsOf(retry) };
}

function secondsOf(retry: RetryInfo | undefined): number | undefined {
  return retry?.retryDelay === undefined ? undefined : Number(retry.retryDelay.seconds);
}
