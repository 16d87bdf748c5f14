/** Identity headers: ignored by rpcs that do not identify callers; elsewhere invalid ones are rejected. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import anyTest, { type TestFn } from "ava";
import { identifies_caller } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { areaOf } from "../../src/rpc/json-rpc/named-methods.js";
import { readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import { createCaller } from "../helpers/process/caller.js";
import { contractServices } from "../helpers/process/contract-files.js";
import { connectGrpc, type TestGrpcClient } from "../helpers/wire/grpc-client.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";

interface Context {
  readonly port: number;
  readonly mcpPort: number;
  /** Node that trusts the header `identity`. */
  readonly trusting: number;
  readonly grpc: TestGrpcClient;
}
const test = anyTest as TestFn<Context>;
type Headers = Readonly<Record<string, string>>;

const methods = (await contractServices()).flatMap((service) => service.methods);
const teardown = fileTeardown();
test.before(async (t) => {
  const [node, trusting] = await Promise.all([
    startMember(teardown, { "mcp-enabled": true, "mcp-port": "0", "tlsnotary-enabled": true }),
    startTestNode(teardown, { "identity-mode": "trusted-header" }),
  ]);
  const grpc = connectGrpc(node.port);
  teardown.teardown(() => grpc.close());
  const { ports } = await askJson<{ ports: { mcp: { actual: number } } }>(node.port, "/health");
  Object.assign(t.context, { port: node.port, mcpPort: ports.mcp.actual, trusting: trusting.port, grpc });
});

/** Invalid identity headers, by description. */
const broken: Readonly<Record<string, Headers>> = {
  "a signature of another kind": { signature: "abc" },
  // Signature of RFC 9421, which this node does not support.
  "a signature of the message": { signature: "sig1=:dGVzdA==:", "signature-input": 'sig1=("@method");created=1' },
  "a signature of long ago": createCaller().headers({ timestamp: 1 }),
  "another network's": createCaller().headers({ network: "mainnet" }),
};

const isIdentifying = (method: DescMethod): boolean => getOption(method, identifies_caller);
const nameOf = ({ parent, name }: DescMethod): string => `${parent.typeName}/${name}`;

/** Calls an rpc with an empty request. Returns the reason of its error, or "OK". */
type Outcome = (context: Context, method: DescMethod, headers: Headers) => Promise<string>;

/** Value of path parameters, for which nothing exists. */
const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, "1");

/** Returns status and reason of an error, or "OK". For a stream the first bytes decide. */
async function askPlain(port: number, path: string, request: RequestInit): Promise<string> {
  const controller = new AbortController();
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...request, signal: controller.signal });
  const reader = response.body!.getReader();
  const { value } = (await reader.read()) as { readonly value: Uint8Array | undefined };
  controller.abort();
  reader.closed.catch(() => undefined);
  const reason = reasonIn(Buffer.from(value ?? []).toString("utf8"));
  return reason === "OK" ? reason : `${response.status} ${reason}`;
}

const json = { "Content-Type": "application/json" };
const reasonIn = (text: string): string => /"(?:errorCode|reason)":"(\w+)"/.exec(text)?.[1] ?? "OK";

const protocols: Readonly<Record<string, { readonly of: (method: DescMethod) => boolean; readonly call: Outcome }>> = {
  "plain HTTP": {
    of: (method) => readHttpRoutes(method).length > 0,
    async call({ port }, method, headers) {
      const rule = readHttpRoutes(method)[0]!;
      const request = rule.body !== undefined ? { body: "{}", headers: { ...json, ...headers } } : { headers };
      return await askPlain(port, pathOf(rule.template), { ...request, method: rule.method });
    },
  },
  Connect: {
    of: ({ methodKind }) => methodKind === "unary",
    async call({ port }, method, headers) {
      return await askPlain(port, `/${nameOf(method)}`, {
        method: "POST",
        body: "{}",
        headers: { ...json, ...headers },
      });
    },
  },
  "Connect streams": {
    of: ({ methodKind }) => methodKind === "server_streaming",
    async call({ port }, method, headers) {
      const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 2]), Buffer.from("{}")]);
      const allHeaders = { ...headers, "Content-Type": "application/connect+json" };
      return await askPlain(port, `/${nameOf(method)}`, { method: "POST", body, headers: allHeaders });
    },
  },
  gRPC: {
    of: ({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming",
    async call({ grpc }, method, headers) {
      const controller = new AbortController();
      try {
        if (method.methodKind === "unary") {
          await grpc.call(method as never, {}, headers);
        } else {
          const messages = grpc.stream(method as never, {}, controller.signal, headers) as AsyncIterable<object>;
          for await (const message of messages) {
            void message;
            break;
          }
        }
        return "OK";
      } catch (error) {
        const { code, reason } = readFailure(error);
        return reason ?? String(code);
      } finally {
        controller.abort();
      }
    },
  },
  "JSON-RPC": {
    of: ({ methodKind }) => methodKind === "unary",
    async call({ port }, method, headers) {
      const name = `${areaOf(method.parent)}.${method.localName}`;
      const request = { jsonrpc: "2.0", method: name, params: {} };
      // In a batch, each request has its own rpc.
      const body = JSON.stringify([
        { ...request, id: 1 },
        { ...request, id: 2, method: "info.getVersion" },
        { ...request, id: 3 },
      ]);
      const { status, text } = await ask(port, "/", { method: "POST", body, headers: { ...json, ...headers } });
      const [first, version, third] = JSON.parse(text) as object[];
      if (JSON.stringify(version) !== '{"jsonrpc":"2.0","id":2,"result":"0.2.0"}') {
        throw new Error(JSON.stringify(version));
      }
      const reasons = [first, third].map((one) => reasonIn(JSON.stringify(one)));
      return `${status} ${[...new Set(reasons)].join()}`;
    },
  },
};

for (const [protocol, { of, call }] of Object.entries(protocols)) {
  test(`reads an identity only for rpcs that identify callers, over ${protocol}`, async (t) => {
    let rejected = 0;
    for (const method of methods.filter(of)) {
      const expected = await call(t.context, method, {});
      for (const [what, headers] of Object.entries(broken)) {
        const outcome = await call(t.context, method, headers);
        const isServed = !/NOT_IMPLEMENTED|\b12$/.test(expected);
        if (isIdentifying(method) && isServed) {
          t.regex(outcome, /INVALID_SIGNATURE$/, `${nameOf(method)}, ${what}`);
          rejected++;
        } else {
          t.is(outcome, expected, `${nameOf(method)}, ${what}`);
        }
      }
    }
    t.true(rejected >= 4, String(rejected));
  });
}

test("ignores identity headers of requests for no rpc", async (t) => {
  const { port, trusting } = t.context;
  const paths = [
    "/",
    "/health",
    "/livez",
    "/readyz",
    "/docs",
    "/openapi.json",
    "/explore",
    "/latest",
    "/status",
    "/metrics",
    "/no",
  ];
  for (const path of paths) {
    const expected = await ask(port, path);
    for (const headers of Object.values(broken)) {
      t.is((await ask(port, path, { headers })).status, expected.status, path);
    }
    const alone = await ask(trusting, path);
    t.is((await ask(trusting, path, { headers: { identity: "0x1" } })).status, alone.status, path);
  }
  for (const body of ["", "[]", '{"method":"ping","params":[]}', '{"jsonrpc":"2.0","id":1,"method":"no"}']) {
    const expected = await ask(port, "/", { method: "POST", body });
    const { status, text } = await ask(port, "/", { method: "POST", body, headers: broken["another network's"]! });
    t.deepEqual([status, text], [expected.status, expected.text], body);
  }
});

test("ignores Gatehouse-Min-Block of probes", async (t) => {
  for (const block of ["9999999", "latest"]) {
    for (const path of ["/health", "/livez", "/readyz", "/version"]) {
      t.is((await ask(t.context.port, path, { headers: { "Gatehouse-Min-Block": block } })).status, 200, path);
    }
  }
});

test("rejects node calls and MCP tools with an invalid identity if their rpc identifies callers", async (t) => {
  const { port, mcpPort } = t.context;
  const headers = broken["a signature of another kind"]!;
  const nodeCall = async (message: string, data: object): Promise<string> => {
    const body = JSON.stringify({ method: "nodeCall", params: [{ message, data }] });
    return (await ask(port, "/", { method: "POST", body, headers })).text;
  };
  t.like(JSON.parse(await nodeCall("getPeerlist", {})), { result: 200 });
  t.like(JSON.parse(await nodeCall("searchStoragePrograms", { query: "a" })), {
    result: 401,
    response: { errorCode: "INVALID_SIGNATURE" },
  });
  const tool = async (name: string, given: object): Promise<string> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } });
    const both = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers };
    return (await ask(mcpPort, "/mcp", { method: "POST", body, headers: both })).text;
  };
  t.regex(await tool("info_getVersion", {}), /0\.2\.0/);
  t.regex(await tool("storage_searchPrograms", { q: "a" }), /INVALID_SIGNATURE/);
});
