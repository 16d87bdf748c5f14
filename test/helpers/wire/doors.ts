/** Every door of a node, and a walk through all of them that asks whatever can be asked and keeps what was answered. */
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
import { isRequired } from "../../../src/rpc/codec/presence.js";
import { nodeCallMessages } from "../../../src/rpc/node-call/node-call.js";
import { contractServices } from "../process/contract-files.js";
import type { TestKey } from "../chain/keys.js";
import { type Known, messageOf, requestsOf } from "./known-requests.js";
import { connectStranger } from "../nodes/odd-peer.js";
import { ask, askJson } from "./plain-client.js";
import { connectRpc, type RpcProtocol, rpcProtocols } from "./rpc-clients.js";
import type { Teardown } from "../nodes/teardown.js";
import type { transports } from "./transports.js";

/** What a node said. */
export interface Said {
  readonly door: string;
  readonly request: string;
  readonly bytes: Buffer;
}

/** Where a node listens. */
export interface Doors {
  readonly port: number;
  readonly ports: Readonly<Record<string, number>>;
}

type Headers = Readonly<Record<string, string>>;
/** Goes through a door. */
type Walk = (t: Teardown, doors: Doors, known: Known, headers: Headers) => Promise<Said[]>;

/** How many requests are under way at a time. */
const width = 16;
/** How long a stream is read that does not end. */
const streamMs = 400;

/** Does something with every item, several at a time. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        await work(next);
      }
    }),
  );
}

/** Everything of an error that its caller gets. */
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

/** A message in bytes, with fields that nobody knows, and as JSON where it can be. */
function bytesOf({ output }: DescMethod, message: Message): Buffer {
  return Buffer.concat([Buffer.from(toBinary(output, message)), Buffer.from(toJsonString(output, message))]);
}

/** The services of a node that describe themselves by reflection, from the contract. */
export async function servedServices(t: Teardown, { port }: Doors): Promise<DescService[]> {
  const client = connectRpc("gRPC by Connect", "HTTP/2 by prior knowledge", { port });
  t.teardown(() => client.close());
  const ask = { messageRequest: { case: "listServices", value: "" } };
  const names: string[] = [];
  for await (const answer of client.stream(
    ServerReflection.method.serverReflectionInfo,
    ask,
    AbortSignal.timeout(20_000),
  )) {
    const { messageResponse } = answer as unknown as { messageResponse: { value: { service: { name: string }[] } } };
    names.push(...messageResponse.value.service.map(({ name }) => name));
    break;
  }
  const all = [...(await contractServices()), Health, ServerReflection, ServerReflectionAlpha];
  return names.map(
    (name) => all.find(({ typeName }) => typeName === name) ?? fail(`Nobody knows the service ${name}.`),
  );
}

function fail(message: string): never {
  throw new Error(message);
}

/** Calls every rpc of some services with everything that is known. */
async function callAll(
  door: string,
  services: readonly DescService[],
  known: Known,
  call: (method: DescMethod, request: object) => AsyncIterable<Message>,
): Promise<Said[]> {
  const said: Said[] = [];
  const calls = services
    .flatMap(({ methods }) => methods)
    .flatMap((method) => requestsOf(method.input, known).map((request) => ({ method, request })));
  await forEach(calls, async ({ method, request }) => {
    const keep = (bytes: Buffer) =>
      said.push({ door: `${door} ${method.name}`, request: JSON.stringify(request), bytes });
    try {
      for await (const message of call(method, messageOf(method.input, request))) {
        keep(bytesOf(method, message));
      }
    } catch (error) {
      keep(bytesOfError(error));
    }
  });
  return said;
}

function walkRpc(protocol: RpcProtocol): Walk {
  return async (t, doors, known, headers) => {
    const isHttp2 = protocol.startsWith("gRPC") && protocol !== "gRPC-Web";
    const name: keyof typeof transports = isHttp2 ? "HTTP/2 by prior knowledge" : "HTTP/1.1";
    const client = connectRpc(protocol, name, { port: doors.port });
    t.teardown(() => client.close());
    return await callAll(protocol, await servedServices(t, doors), known, async function* (method, request) {
      if (method.methodKind === "unary") {
        yield await client.call(method, request, headers);
      } else {
        yield* client.stream(method, request, AbortSignal.timeout(streamMs));
      }
    });
  };
}

const walkPlain: Walk = async (t, doors, known, headers) => {
  const said: Said[] = [];
  const pages = Object.keys((await askJson<{ paths: object }>(doors.port, "/openapi.json")).paths);
  const paths = (await servedServices(t, doors))
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
      const text = await readStream(`http://127.0.0.1:${doors.port}${path}`, headers);
      said.push({ door: `plain ${path.slice(0, 60)}`, request: path, bytes: Buffer.from(text) });
      return;
    }
    const hasBody = filled !== undefined;
    const body = hasBody ? { body: JSON.stringify(request) } : {};
    const answer = await ask(doors.port, path, {
      method,
      headers: { ...headers, ...(hasBody && { "content-type": "application/json" }) },
      ...body,
    });
    said.push({
      door: `plain ${path.slice(0, 60)}`,
      request: path,
      bytes: Buffer.from(JSON.stringify(answer.headers) + answer.text),
    });
  });
  return said;
};

/** What a stream says until it ends, or for a while. */
async function readStream(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  let text = "";
  try {
    const { body } = await fetch(url, { headers, signal: AbortSignal.timeout(streamMs) });
    for await (const piece of body ?? []) {
      text += Buffer.from(piece as Uint8Array).toString("latin1");
    }
  } catch {
    // It was still open.
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

const walkJsonRpc: Walk = async (t, doors, known, headers) => {
  const calls = (await servedServices(t, doors)).flatMap((service) =>
    service.methods.flatMap((method) =>
      requestsOf(method.input, known).map((params) => ({ method: `${areaOf(service)}.${method.localName}`, params })),
    ),
  );
  const envelopes = [...calls, { method: "rpc.discover", params: {} }].map((call) => ({
    jsonrpc: "2.0",
    id: 1,
    ...call,
  }));
  return await postAll("JSON-RPC", doors, envelopes, headers);
};

const walkNodeCall: Walk = async (_, doors, known, headers) => {
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
  const envelopes = [{ method: "ping", params: [] }, ...params.map((each) => ({ method: "nodeCall", params: each }))];
  return await postAll("node call", doors, envelopes, headers);
};

async function postAll(door: string, { port }: Doors, bodies: readonly object[], headers: Headers): Promise<Said[]> {
  const said: Said[] = [];
  await forEach(bodies, async (body) => {
    const request = JSON.stringify(body);
    const answer = await ask(port, "/", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: request,
    });
    said.push({ door: `${door} ${request.slice(0, 80)}`, request, bytes: Buffer.from(answer.text) });
  });
  return said;
}

/** Requests of one client: what it keeps of each makes many slow. */
const mostOfClient = 100;

async function connectMcp(t: Teardown, { port }: Doors, headers: Headers): Promise<Client> {
  const { ports } = await askJson<{ ports: { mcp: { actual: number } } }>(port, "/health");
  const client = new Client({ name: "audit", version: "0" });
  const url = new URL(`http://127.0.0.1:${ports.mcp.actual}/mcp`);
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: { ...headers } } });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  t.teardown(() => client.close());
  return client;
}

const walkMcp: Walk = async (t, doors, known, headers) => {
  const said: Said[] = [];
  const keep = async (door: string, request: string, answer: Promise<unknown>): Promise<void> => {
    const text = await answer.then(
      (value) => JSON.stringify(value),
      (error: unknown) => bytesOfError(error).toString(),
    );
    said.push({ door, request, bytes: Buffer.from(text) });
  };
  const client = await connectMcp(t, doors, headers);
  const { tools } = await client.listTools();
  await keep("MCP", "tools", Promise.resolve(tools));
  await keep("MCP", "resources", client.listResources());
  await keep("MCP", "templates", client.listResourceTemplates());
  const calls = (await servedServices(t, doors))
    .flatMap((service) => service.methods.map((method) => ({ area: areaOf(service), method })))
    .filter(({ area, method }) => tools.some(({ name }) => name === `${area}_${method.localName}`))
    .flatMap(({ area, method }) => requestsOf(method.input, known).map((request) => ({ area, method, request })));
  for (let i = 0; i < calls.length; i += mostOfClient) {
    const next = await connectMcp(t, doors, headers);
    await forEach(calls.slice(i, i + mostOfClient), async ({ area, method, request }) => {
      const name = `${area}_${method.localName}`;
      await keep(`MCP tool ${name}`, JSON.stringify(request), next.callTool({ name, arguments: request }));
      const required = method.input.fields.filter(isRequired);
      const segments = required.map(({ jsonName }) => encodeURIComponent(String(request[jsonName] ?? "x")));
      const uri = `gatehouse://${[area, method.localName, ...segments].join("/")}`;
      await keep(`MCP resource ${name}`, uri, next.readResource({ uri }));
    });
  }
  return said;
};

const walkMetrics: Walk = async (_, { port }) => {
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(port, "/health");
  const { text } = await ask(ports.metrics.actual, "/metrics");
  return [{ door: "metrics", request: "/metrics", bytes: Buffer.from(text) }];
};

/** The doors of the public side, by name. */
export const publicDoors: Readonly<Record<string, Walk>> = {
  plain: walkPlain,
  "JSON-RPC": walkJsonRpc,
  "node call": walkNodeCall,
  MCP: walkMcp,
  metrics: walkMetrics,
  ...Object.fromEntries(rpcProtocols.map((protocol) => [protocol, walkRpc(protocol)])),
};

/** The internal port, for somebody who holds this key: every rpc of the contract is tried there. */
export async function walkInternalPort(t: Teardown, { ports }: Doors, known: Known, key: TestKey): Promise<Said[]> {
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
