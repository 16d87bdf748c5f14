/** All APIs of a node, with a crawler for each that sends every possible request and records the responses. */
import {
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { readHttpRoutes } from "../../../src/rpc/http/http-rule.js";
import { isRequired } from "../../../src/rpc/codec/fields.js";
import { nodeCallMessages } from "../../../src/rpc/node-call/node-call.js";
import { contractServices } from "../process/contract-files.js";
import type { TestKey } from "../chain/keys.js";
import { type Known, messageOf, requestsOf } from "./known-requests.js";
import { connectStranger } from "../nodes/odd-peer.js";
import { ask, askJson } from "./plain-client.js";
import { connectRpc, type RpcProtocol, rpcProtocols } from "./rpc-clients.js";
import type { Teardown } from "../nodes/teardown.js";
import type { transports } from "./transports.js";

/** A response of a node, or a part of one. */
export interface RecordedResponse {
  readonly api: string;
  readonly request: string;
  readonly bytes: Buffer;
}

/** The ports of a node. */
export interface NodePorts {
  readonly port: number;
  readonly ports: Readonly<Record<string, number>>;
}

type Headers = Readonly<Record<string, string>>;
/** Sends every possible request to an API. */
type Crawl = (t: Teardown, node: NodePorts, known: Known, headers: Headers) => Promise<RecordedResponse[]>;

/** The number of concurrent requests. */
const concurrency = 16;
/** The time to read from an endless stream. */
const streamMs = 400;

/** Calls a function for each item, with limited concurrency. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        await work(next);
      }
    }),
  );
}

/** Encodes all parts of an error that the caller receives. */
function bytesOfError(error: unknown): Buffer {
  const { message, details, metadata } = error as {
    message: string;
    details?: unknown;
    metadata?: { toJSON(): unknown };
  };
  const parts =
    error instanceof ConnectError ? [...error.metadata, error.details.map(inBase64)] : [details, metadata?.toJSON()];
  return Buffer.from(`${message}\n${JSON.stringify(parts)}`);
}

const inBase64 = (detail: object): unknown =>
  JSON.parse(
    JSON.stringify(detail, (_, value: unknown) =>
      value instanceof Uint8Array ? [...value] : typeof value === "bigint" ? String(value) : value,
    ),
  );

/** Encodes a message in binary form, including unknown fields, and as JSON. */
function bytesOf({ output }: DescMethod, message: Message): Buffer {
  return Buffer.concat([Buffer.from(toBinary(output, message)), Buffer.from(toJsonString(output, message))]);
}

/** Returns the services that a node lists by reflection. */
export async function servedServices(t: Teardown, { port }: NodePorts): Promise<DescService[]> {
  const client = connectRpc("gRPC by Connect", "HTTP/2 by prior knowledge", { port });
  t.teardown(() => client.close());
  const ask = { messageRequest: { case: "listServices", value: "" } };
  const names: string[] = [];
  for await (const response of client.stream(
    ServerReflection.method.serverReflectionInfo,
    ask,
    AbortSignal.timeout(20_000),
  )) {
    const { messageResponse } = response as unknown as { messageResponse: { value: { service: { name: string }[] } } };
    names.push(...messageResponse.value.service.map(({ name }) => name));
    break;
  }
  const all = [...(await contractServices()), Health, ServerReflection, ServerReflectionAlpha];
  return names.map((name) => all.find(({ typeName }) => typeName === name) ?? fail(`Unknown service ${name}.`));
}

function fail(message: string): never {
  throw new Error(message);
}

/** Calls every rpc of some services with all known values. */
async function callAll(
  api: string,
  services: readonly DescService[],
  known: Known,
  call: (method: DescMethod, request: object) => AsyncIterable<Message>,
): Promise<RecordedResponse[]> {
  const responses: RecordedResponse[] = [];
  const calls = services
    .flatMap(({ methods }) => methods)
    .flatMap((method) => requestsOf(method.input, known).map((request) => ({ method, request })));
  await forEach(calls, async ({ method, request }) => {
    const record = (bytes: Buffer) =>
      responses.push({ api: `${api} ${method.name}`, request: JSON.stringify(request), bytes });
    try {
      for await (const message of call(method, messageOf(method.input, request))) {
        record(bytesOf(method, message));
      }
    } catch (error) {
      record(bytesOfError(error));
    }
  });
  return responses;
}

function crawlRpc(protocol: RpcProtocol): Crawl {
  return async (t, node, known, headers) => {
    const isHttp2 = protocol.startsWith("gRPC") && protocol !== "gRPC-Web";
    const name: keyof typeof transports = isHttp2 ? "HTTP/2 by prior knowledge" : "HTTP/1.1";
    const client = connectRpc(protocol, name, { port: node.port });
    t.teardown(() => client.close());
    return await callAll(protocol, await servedServices(t, node), known, async function* (method, request) {
      if (method.methodKind === "unary") {
        yield await client.call(method, request, headers);
      } else {
        yield* client.stream(method, request, AbortSignal.timeout(streamMs));
      }
    });
  };
}

const crawlPlain: Crawl = async (t, node, known, headers) => {
  const responses: RecordedResponse[] = [];
  const pages = Object.keys((await askJson<{ paths: object }>(node.port, "/openapi.json")).paths);
  const paths = (await servedServices(t, node))
    .flatMap(({ methods }) => methods)
    .flatMap((method) => {
      const route = readHttpRoutes(method)[0];
      return route === undefined
        ? []
        : requestsOf(method.input, known).map((request) => ({
            ...pathOf(route.template, method, request),
            route,
            request,
          }));
    });
  const streams = new Set(paths.filter(({ route }) => route.isStream).map(({ path }) => path.split("?")[0]));
  const others = [
    "/",
    "/docs",
    "/explore",
    "/latest",
    "/openapi.json",
    "/status",
    "/status/data",
    "/metrics",
    ...pages.filter((page) => !streams.has(page)),
  ].map((path) => ({
    ...{ path, route: { method: "GET", body: undefined, isStream: false }, request: {} },
  }));
  await forEach([...paths, ...others], async ({ path, route: { method, body: filled, isStream }, request }) => {
    if (isStream) {
      const text = await readStream(`http://127.0.0.1:${node.port}${path}`, headers);
      responses.push({ api: `plain ${path.slice(0, 60)}`, request: path, bytes: Buffer.from(text) });
      return;
    }
    const hasBody = filled !== undefined;
    const body = hasBody ? { body: JSON.stringify(request) } : {};
    const response = await ask(node.port, path, {
      method,
      headers: { ...headers, ...(hasBody && { "content-type": "application/json" }) },
      ...body,
    });
    responses.push({
      api: `plain ${path.slice(0, 60)}`,
      request: path,
      bytes: Buffer.from(JSON.stringify(response.headers) + response.text),
    });
  });
  return responses;
};

/** Reads a stream until it ends, or for a limited time. */
async function readStream(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  let text = "";
  try {
    const { body } = await fetch(url, { headers, signal: AbortSignal.timeout(streamMs) });
    for await (const piece of body ?? []) {
      text += Buffer.from(piece as Uint8Array).toString("latin1");
    }
  } catch {
    // The time limit closed the stream.
  }
  return text;
}

function pathOf(template: string, { input }: DescMethod, request: Readonly<Record<string, unknown>>): { path: string } {
  const inPath = new Set<string>();
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const { jsonName } = input.fields.find((field) => field.name === name)!;
    inPath.add(jsonName);
    return encodeURIComponent(String(request[jsonName] ?? "x"));
  });
  const query = Object.entries(request)
    .filter(([name]) => !inPath.has(name))
    .map(([name, value]) => [name, String(value)] as [string, string]);
  return { path: query.length === 0 ? path : `${path}?${new URLSearchParams(query)}` };
}

const areaOf = ({ typeName }: DescService): string => typeName.split(".").at(-3)!;

const crawlJsonRpc: Crawl = async (t, node, known, headers) => {
  const calls = (await servedServices(t, node)).flatMap((service) =>
    service.methods.flatMap((method) =>
      requestsOf(method.input, known).map((params) => ({ method: `${areaOf(service)}.${method.localName}`, params })),
    ),
  );
  const envelopes = [...calls, { method: "rpc.discover", params: {} }].map((call) => ({
    jsonrpc: "2.0",
    id: 1,
    ...call,
  }));
  return await postAll("JSON-RPC", node, envelopes, headers);
};

const crawlNodeCall: Crawl = async (_, node, known, headers) => {
  const texts = known.texts.map((text) => ({
    storageAddress: text,
    hash: text,
    owner: text,
    query: text,
    key: text,
    index: 0,
  }));
  const numbers = known.numbers.flatMap((number) => [
    { blockNumber: number, start: number, limit: 50 },
    { start: "latest", limit: number },
  ]);
  const params = nodeCallMessages.flatMap((message) => [{}, ...texts, ...numbers].map((data) => [{ message, data }]));
  const envelopes = [{ method: "ping", params: [] }, ...params.map((call) => ({ method: "nodeCall", params: call }))];
  return await postAll("node call", node, envelopes, headers);
};

async function postAll(
  api: string,
  { port }: NodePorts,
  bodies: readonly object[],
  headers: Headers,
): Promise<RecordedResponse[]> {
  const responses: RecordedResponse[] = [];
  await forEach(bodies, async (body) => {
    const request = JSON.stringify(body);
    const response = await ask(port, "/", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: request,
    });
    responses.push({ api: `${api} ${request.slice(0, 80)}`, request, bytes: Buffer.from(response.text) });
  });
  return responses;
}

/** The number of requests of one client, which gets slower with each request. */
const requestsPerClient = 100;

async function connectMcp(t: Teardown, { port }: NodePorts, headers: Headers): Promise<Client> {
  const { ports } = await askJson<{ ports: { mcp: { actual: number } } }>(port, "/health");
  const client = new Client({ name: "audit", version: "0" });
  const url = new URL(`http://127.0.0.1:${ports.mcp.actual}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { ...headers } } });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  t.teardown(() => client.close());
  return client;
}

const crawlMcp: Crawl = async (t, node, known, headers) => {
  const responses: RecordedResponse[] = [];
  const record = async (api: string, request: string, response: Promise<unknown>): Promise<void> => {
    const text = await response.then(
      (value) => JSON.stringify(value),
      (error: unknown) => bytesOfError(error).toString(),
    );
    responses.push({ api, request, bytes: Buffer.from(text) });
  };
  const client = await connectMcp(t, node, headers);
  const { tools } = await client.listTools();
  await record("MCP", "tools", Promise.resolve(tools));
  await record("MCP", "resources", client.listResources());
  await record("MCP", "templates", client.listResourceTemplates());
  const calls = (await servedServices(t, node))
    .flatMap((service) => service.methods.map((method) => ({ area: areaOf(service), method })))
    .filter(({ area, method }) => tools.some(({ name }) => name === `${area}_${method.localName}`))
    .flatMap(({ area, method }) => requestsOf(method.input, known).map((request) => ({ area, method, request })));
  for (let i = 0; i < calls.length; i += requestsPerClient) {
    const next = await connectMcp(t, node, headers);
    await forEach(calls.slice(i, i + requestsPerClient), async ({ area, method, request }) => {
      const name = `${area}_${method.localName}`;
      await record(`MCP tool ${name}`, JSON.stringify(request), next.callTool({ name, arguments: request }));
      const required = method.input.fields.filter(isRequired);
      const segments = required.map(({ jsonName }) => encodeURIComponent(String(request[jsonName] ?? "x")));
      const uri = `gatehouse://${[area, method.localName, ...segments].join("/")}`;
      await record(`MCP resource ${name}`, uri, next.readResource({ uri }));
    });
  }
  return responses;
};

const crawlMetrics: Crawl = async (_, { port }) => {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(port, "/health");
  const { text } = await ask(ports.metrics.actual, "/metrics");
  return [{ api: "metrics", request: "/metrics", bytes: Buffer.from(text) }];
};

/** The public APIs, by name. */
export const publicApis: Readonly<Record<string, Crawl>> = {
  plain: crawlPlain,
  "JSON-RPC": crawlJsonRpc,
  "node call": crawlNodeCall,
  MCP: crawlMcp,
  metrics: crawlMetrics,
  ...Object.fromEntries(rpcProtocols.map((protocol) => [protocol, crawlRpc(protocol)])),
};

/** Calls every rpc of the contract on the internal port, with this key. */
export async function crawlInternalPort(
  t: Teardown,
  { ports }: NodePorts,
  known: Known,
  key: TestKey,
): Promise<RecordedResponse[]> {
  const stranger = connectStranger(t, ports["omni"]!, key);
  const services = [...(await contractServices()), Health, ServerReflection];
  return await callAll("internal", services, known, async function* (method, request) {
    if (method.methodKind === "unary") {
      yield await stranger.call(method as DescMethodUnary, request as never);
    } else if (method.methodKind === "server_streaming") {
      yield* stranger.stream(method as DescMethodServerStreaming, request as never, AbortSignal.timeout(streamMs));
    }
  });
}
