/** The node's services in adapters and transports of the Connect library. */
import { Code, ConnectError, createClient, createContextValues, createRouterTransport } from "@connectrpc/connect";
import { expressConnectMiddleware } from "@connectrpc/connect-express";
import { connectNodeAdapter, createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import express from "express";
import { callerKey } from "gatehouse/express";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { StorageService } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { NodeApplication } from "../../src/express/application.js";
import { hidden, owner } from "../contract/data.js";
import { startContractNodes } from "../contract/nodes.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { version } from "../../src/base/version.js";

const fileScope = fileTeardown();
let routes: NodeApplication["routes"];
test.before(async () => {
  const { member } = await startContractNodes(fileScope);
  ({ routes } = await member.node.application());
});

test("serves the routes by createRouterTransport, with the reasons of errors", async (t) => {
  const transport = createRouterTransport(routes);
  t.is((await createClient(InfoService, transport).getVersion({})).version, version);
  const storage = createClient(StorageService, transport);
  const error = await t.throwsAsync(storage.getProgram({ storageAddress: "x" }), { instanceOf: ConnectError });
  t.is(error.code, Code.InvalidArgument);
  t.regex(error.rawMessage, /^storage_address must be stor- and 40/);
  for await (const { snapshot } of createClient(HealthService, transport).watchHealth({})) {
    t.true(snapshot?.accepting);
    break;
  }
});

test("serves the routes by connectNodeAdapter, with the caller from the context", async (t) => {
  const adapter = connectNodeAdapter({
    routes,
    contextValues: ({ headers }) =>
      createContextValues().set(callerKey, {
        address: "",
        identity: headers["x-owner"] === "yes" ? owner : undefined,
      }),
  });
  const server = createServer(adapter).listen(0, "127.0.0.1");
  await once(server, "listening");
  server.on("session", (session) => t.teardown(() => session.destroy()));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` });
  const { getProgram } = createClient(StorageService, transport);
  const of = { storageAddress: hidden };
  await t.throwsAsync(getProgram(of), { instanceOf: ConnectError });
  t.is((await getProgram(of, { headers: { "x-owner": "yes" } })).storageAddress, hidden);
});

test("serves the routes by expressConnectMiddleware", async (t) => {
  const { url } = await listenApp(t, express().use(expressConnectMiddleware({ routes })));
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  t.is((await createClient(InfoService, transport).getVersion({})).version, version);
});
