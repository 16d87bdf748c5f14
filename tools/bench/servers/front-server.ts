/**
 * Serves constant responses with common frameworks: Fastify, Express, connect-express and connectNodeAdapter. Plain
 * responses have the headers and the body of the node.
 */
import { fromBinary } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import express from "express";
import { createServer, type RequestListener } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { GetVersionResponseSchema, InfoService } from "../../../gen/gatehouse/info/v1/info_pb.js";
import "./report-usage.js";

export type FrontKind = "fastify" | "express" | "connect-express" | "connectNodeAdapter" | "connectNodeAdapter, h2";

/** Part of Fastify's types that is used. `npm run tools` installs Fastify. */
interface Fastify {
  get(path: string, answer: (request: unknown, reply: { headers(values: Headers): unknown }) => Promise<unknown>): void;
  ready(): Promise<void>;
  routing: RequestListener;
}

type Headers = Readonly<Record<string, string>>;

/** Responses of a front by path; `version` is the message of the version rpc. */
export interface FrontAnswers {
  readonly answers: Readonly<Record<string, Uint8Array>>;
  /** Headers of plain responses, besides those that every server of Node.js sends. */
  readonly headers: Headers;
}

interface Begin extends FrontAnswers {
  readonly kind: FrontKind;
}

process.once("message", ({ kind, ...answers }: Begin) => {
  void listenerOf(kind, answers).then((listener) => {
    const server = kind.endsWith("h2") ? createHttp2Server(listener as never) : createServer(listener);
    server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
  });
});

async function listenerOf(kind: FrontKind, { answers, headers }: FrontAnswers): Promise<RequestListener> {
  const values = Object.entries(answers).map(([path, bytes]) => [path, bytes] as const);
  const plain = values.filter(([path]) => path.startsWith("/") && !path.startsWith("/gatehouse"));
  const json = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString("utf8"));
  if (kind === "fastify") {
    const create = createRequire(resolve("tools/packages/package.json"))("fastify") as () => Fastify;
    const app = create();
    plain.forEach(([path, bytes]) => {
      const value = json(bytes);
      // Fastify sends a string as it is, so encode it as JSON here.
      app.get(path, (_request, reply) => {
        reply.headers(headers);
        return Promise.resolve(typeof value === "string" ? JSON.stringify(value) : value);
      });
    });
    await app.ready();
    return app.routing;
  }
  const message = fromBinary(GetVersionResponseSchema, answers["version"]!);
  const routes = (router: ConnectRouter) => router.service(InfoService, { getVersion: () => message });
  if (kind === "express" || kind === "connect-express") {
    const app = express().disable("etag").disable("x-powered-by");
    plain.forEach(([path, bytes]) => {
      const value = json(bytes);
      app.get(path, (_request, response) => void response.set(headers).json(value));
    });
    return app.use(expressConnectMiddleware({ routes }));
  }
  return connectNodeAdapter({ routes }) as RequestListener;
}
