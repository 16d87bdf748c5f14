/**
 * The compiled handlers and the application of Express: every request of the contract, and what strangers send, answered
 * the same by both, but for the date and the request's name. Over HTTP/2 the port has the compiled handlers alone.
 */
import { create, toJson } from "@bufbuild/protobuf";
import express from "express";
import anyTest, { type TestFn } from "ava";
import { type ContractCase, headersOf, type NodeName, plainRequestOf } from "../contract/case.js";
import { cases } from "../contract/cases.js";
import { startContractNodes } from "../contract/nodes.js";
import { areaOf } from "../../src/rpc/json-rpc/named-methods.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { ask, jsonPost, type PlainRequest, type PlainResponse } from "../helpers/wire/plain-client.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { connectTransport } from "../helpers/wire/transports.js";

type Ask = (path: string, request: PlainRequest) => Promise<PlainResponse>;
/** Sends a request to the compiled handlers, and to an application that mounts the node. */
type Ways = Record<NodeName, { readonly compiled: Ask; readonly mounted: Ask }>;
const test = anyTest as TestFn<Ways>;

const fileScope = fileTeardown();

test.before(async (t) => {
  const nodes = await startContractNodes(fileScope);
  for (const name of ["member", "newcomer"] as const) {
    const { node, port } = nodes[name];
    const { port: app } = await listenApp(
      fileScope,
      express()
        .disable("x-powered-by")
        .use("/mounted/here", (await node.application()).listener),
    );
    const client = connectTransport("HTTP/2 by prior knowledge", { port });
    fileScope.teardown(() => client.close());
    t.context[name] = {
      compiled: (path, request) => client.ask(path, request),
      mounted: (path, request) => ask(app, `/mounted/here${path}`, request),
    };
  }
});

const alike = test.macro({
  async exec(t, contractCase: ContractCase) {
    const { node, path, method, request } = contractCase;
    const { compiled, mounted } = t.context[node];
    const signed = headersOf(contractCase);
    const compare = async (to: string, given: PlainRequest): Promise<void> => {
      // One after the other, so that counts of requests in flight are equal.
      const expected = lasting(await compiled(to, given));
      t.deepEqual(lasting(await mounted(to, given)), expected);
    };
    await compare(path, plainRequestOf(contractCase));
    if (request !== undefined) {
      const params = toJson(method.input, create(method.input, request as never));
      const rpc = `${areaOf(method.parent)}.${method.localName}`;
      await compare("/", jsonPost({ jsonrpc: "2.0", id: 1, method: rpc, params }, signed));
      await compare(`/${method.parent.typeName}/${method.name}`, jsonPost(params, signed));
    }
  },
  title: (_, { node, httpMethod, path, title }: ContractCase) => `${httpMethod} ${path}: ${title}, on a ${node}`,
});

/** Returns a response without the values that differ between requests. */
function lasting({ status, headers, text: body }: PlainResponse): object {
  const { connection: _, date, "x-request-id": requestId, "content-length": length, ...others } = headers;
  const lastingText = body
    .replace(/"(\w+_?[sS]|\w+Ms|time|since|timestamp)":"?\d+(\.\d+)?"?/g, '"$1":"<number>"')
    .replace(/"requestId":"[\w-]+"/g, '"requestId":"<id>"');
  return {
    ...{ status, isDated: date !== undefined, isNamed: requestId !== undefined },
    // Without the symbol that node:http2 adds.
    headers: Object.fromEntries(Object.entries(others)),
    // The content length differs if masked values have other lengths.
    ...(lastingText === body && body !== "" ? { length } : { hasLength: length !== undefined }),
    text: lastingText,
  };
}

for (const contractCase of cases) {
  test.serial(alike, contractCase);
}

const stor = `stor-${"0".repeat(40)}`;
const hostilePaths = `
  / // /// /. /.. /%2e /%2E%2E/health /health/ /health// //health /Health /HEALTH
  /healt%68 /%68ealth /health%2f /health%2F /health%20 /health%00 /% /%zz /health% /%ff /%c3%28 /%C3%A9
  /health? /health?? /health?verbose /health?verbose=maybe /health?verbose=1&verbose=2
  /version/x /version?__proto__=1 /__proto__ /constructor /storage-program/__proto__ /storage-program
  /storage-program/ /storage-program/${stor} /storage-program/${stor}/ /storage-program/${stor}/all/
  /storage-program/${stor}/field/ /storage-program/${stor}/field/%2F /storage-program/${stor}/field/a%2Fb
  /storage-program/${stor}/field/%zz /storage-program/%ff/all /storage-program/${stor}/field/..%2f..
  /storage-program/owner/x?limit=0 /storage-program/owner/x?limit=1&limit=2 /storage-program/search?q=%zz
  /storage-program/search?q=a+b&limit=-1 /storage-program/search?%71=a /zk/merkle/proof/ /zk/nullifier/x%00
  /docs /docs/ /doc%73 /DOCS /openapi.json /openapi.json?x /status /explore /explore/ /latest /metrics
  /health;x=1 /health#x /* /:x /(a) /health:x /gatehouse.info.v1.InfoService/GetVersion
  /gatehouse.info.v1.InfoService/ /gatehouse.info.v1.InfoService/GetVersion/
  /gatehouse.info.v1.infoservice/GetVersion`
  .trim()
  .split(/\s+/);

for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]) {
  test.serial(`responds alike to ${method} of ${hostilePaths.length} hostile paths`, async (t) => {
    const { compiled, mounted } = t.context.member;
    for (const path of hostilePaths) {
      t.deepEqual(lasting(await mounted(path, { method })), lasting(await compiled(path, { method })), path);
    }
  });
}
