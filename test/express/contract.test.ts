/** Every request of the contract, to a mounted node and to its port: the answers are the same. */
import { create, toJson } from "@bufbuild/protobuf";
import express from "express";
import anyTest, { type TestFn } from "ava";
import { createNodeRouter } from "../../src/express/router.js";
import type { ContractCase, NodeName } from "../contract/case.js";
import { cases } from "../contract/cases.js";
import { people } from "../contract/data.js";
import { startContractNodes } from "../contract/nodes.js";
import { callerOf } from "../helpers/caller.js";
import { listenApp } from "../helpers/express-app.js";
import { ask, type PlainRequest, type PlainResponse } from "../helpers/plain-client.js";
import { fileTeardown } from "../helpers/teardown.js";

/** Ports of the node itself, and of an application that mounts it. */
type Ports = Record<NodeName, { readonly own: number; readonly app: number }>;
const test = anyTest as TestFn<Ports>;

const whole = fileTeardown();

test.before(async (t) => {
  const nodes = await startContractNodes(whole);
  for (const name of ["member", "newcomer"] as const) {
    const { node, port: own } = nodes[name];
    const { port: app } = await listenApp(whole, express().use("/mounted/here", createNodeRouter(node)));
    t.context[name] = { own, app };
  }
});

const alike = test.macro({
  async exec(t, { node, httpMethod, path, body, caller, method, request }: ContractCase) {
    const { own, app } = t.context[node];
    const signed = caller === undefined ? {} : callerOf(people[caller]).headers();
    const compare = async (to: string, given: PlainRequest): Promise<void> => {
      // One after the other, so that counts of requests in flight are the same.
      const atPort = lasting(await ask(own, to, given));
      t.deepEqual(lasting(await ask(app, `/mounted/here${to}`, given)), atPort);
    };
    const json = { "Content-Type": "application/json", ...signed };
    await compare(path, body === undefined ? { headers: signed } : { method: httpMethod, body, headers: json });
    if (request !== undefined) {
      const params = toJson(method.input, create(method.input, request as never));
      const rpc = `${method.parent.typeName.split(".").at(-3)}.${method.localName}`;
      await compare("/", {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: rpc, params }),
        headers: json,
      });
      const called = JSON.stringify(params);
      await compare(`/${method.parent.typeName}/${method.name}`, { method: "POST", body: called, headers: json });
    }
  },
  title: (_, { node, httpMethod, path, title }: ContractCase) => `${httpMethod} ${path}: ${title}, on a ${node}`,
});

/** An answer without what differs from one request to the next. */
function lasting({ status, headers, text }: PlainResponse): object {
  return {
    status,
    type: headers["content-type"],
    dormant: headers["x-node-dormant"],
    text: text
      .replace(/"(\w+_?[sS]|\w+Ms|time|since|timestamp)":"?\d+(\.\d+)?"?/g, '"$1":"<number>"')
      .replace(/"requestId":"[\w-]+"/g, '"requestId":"<id>"'),
  };
}

for (const contractCase of cases) {
  test.serial(alike, contractCase);
}
