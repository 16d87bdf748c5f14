/** Plain HTTP routes for another service: the bookstore of examples/transcoding in an Express application. */
import { Code, ConnectError, createContextKey, createContextValues, type ServiceImpl } from "@connectrpc/connect";
import test from "ava";
import express from "express";
import { transcode, type TranscodeOptions } from "gatehouse/transcoding";
import { listenApp } from "../helpers/nodes/express-app.js";
import { ask, jsonPost, type PlainResponse } from "../helpers/wire/plain-client.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { AddedService } from "../../gen/gatehouse/testing/v1/added_pb.js";
import { PlainRoutesService } from "../../gen/gatehouse/testing/v1/plain_routes_pb.js";

type Routes = TranscodeOptions["routes"];
type Parts = Partial<ServiceImpl<typeof PlainRoutesService>>;

const routesOf =
  (functions: Parts): Routes =>
  (router) =>
    router.service(PlainRoutesService, functions);

/** Starts an application with the routes, and records the requests that the routes pass on. */
async function serve(t: Teardown, functions: Parts, options: Partial<TranscodeOptions> = {}): Promise<number> {
  const app = express().use(transcode({ routes: routesOf(functions), ...options }));
  app.use((request, response) => void response.status(418).send(`${request.method} ${request.path}`));
  return (await listenApp(t, app)).port;
}

const bodyOf = ({ text }: PlainResponse): unknown => JSON.parse(text);

/** Responds with the request as JSON. */
const echo: Parts = {
  get: ({ name, number, tags, inner }) => ({ name, number, tags, ...(inner && { inner }) }),
  put: ({ name, number, inner }) => ({ name, number, ...(inner && { inner }) }),
};

test("binds multi-segment paths, verbs and wildcards to fields", async (t) => {
  const port = await serve(t, echo);
  for (const [path, name] of [
    ["/v1/rooms/a/beds/b", "rooms/a/beds/b"],
    ["/v1/rooms/a%2Fb/beds/%C3%A9", "rooms/a/b/beds/é"],
    ["/v1/files/x/y/z", "x/y/z"],
    ["/v1/a:open", "a"],
    ["/v1/a", "a"],
  ] as const) {
    t.like(bodyOf(await ask(port, path)), { name }, path);
  }
  t.is((await ask(port, "/v1/")).status, 418, "a segment is not empty");
  t.is((await ask(port, "/V1/a")).status, 418);
  t.is((await ask(port, "/v1/a", { method: "DELETE" })).text, "DELETE /v1/a");
  t.is((await ask(port, "/v1/a", { method: "PROPFIND" })).status, 200);
});

test("binds queries to lists, nested messages and oneof fields, and rejects repetitions", async (t) => {
  const port = await serve(t, echo);
  t.deepEqual(bodyOf(await ask(port, "/v1/a?number=7&tags=x&tags=y&inner.depth=2&inner.inner.word=w&unknown=1")), {
    name: "a",
    number: 7,
    tags: ["x", "y"],
    inner: { depth: 2, inner: { depth: 0, word: "w" } },
  });
  t.deepEqual(bodyOf(await ask(port, "/v1/a?inner.depth=2&inner.depth=3")), {
    success: false,
    error: "inner.depth is given more than once.",
    errorCode: "INVALID_REQUEST",
  });
  t.is((await ask(port, `/v1/a?${"inner.".repeat(1_000)}depth=1`)).status, 200, "no field stands so deep");
  t.is((await ask(port, "/v1/a?number=x")).status, 400);
  t.is((await ask(port, "/v1/a?__proto__.x=1&constructor=2")).status, 200);
});

test("binds the body to the request or one field, next to path and query", async (t) => {
  const port = await serve(t, echo);
  t.like(bodyOf(await ask(port, "/v1/a?number=3", jsonPost('{"depth":4}'))), {
    name: "a",
    number: 3,
    inner: { depth: 4 },
  });
  t.like(bodyOf(await ask(port, "/v2", jsonPost('{"name":"b","inner":{"depth":5}}'))), {
    name: "b",
    inner: { depth: 5 },
  });
  t.is((await ask(port, "/v1/a", jsonPost("{"))).status, 400);
  t.is((await ask(port, "/v2", jsonPost(`"${"x".repeat(3_000_000)}"`))).status, 413);
});

test("responds to errors with the status of their code, the reason of their details, and their headers", async (t) => {
  const port = await serve(t, {
    get({ name }) {
      throw name === "bug"
        ? new Error("a secret")
        : new ConnectError("There is none.", Code.NotFound, { "X-Hint": "look elsewhere" });
    },
  });
  const answer = await ask(port, "/v1/a");
  t.is(answer.status, 404);
  t.is(answer.headers["x-hint"], "look elsewhere");
  t.is(answer.headers["access-control-allow-origin"], undefined, "who may read it is the application's to say");
  t.deepEqual(bodyOf(answer), { success: false, error: "There is none.", errorCode: "NOT_FOUND" });
  const bug = await ask(port, "/v1/bug");
  t.is(bug.status, 500);
  t.false(bug.text.includes("secret"));
});

test("passes all errors to onError, including those of invalid requests", async (t) => {
  const port = await serve(
    t,
    { get: () => Promise.reject(new ConnectError("Later.", Code.Unavailable)) },
    {
      onError: (error, request, response) =>
        void response.status(555).json([error.code, error.rawMessage, request.path]),
    },
  );
  t.deepEqual(bodyOf(await ask(port, "/v1/a")), [Code.Unavailable, "Later.", "/v1/a"]);
  const wrong = await ask(port, "/v1/a?number=x");
  t.is(wrong.status, 555);
  t.is((bodyOf(wrong) as unknown[])[0], Code.InvalidArgument);
});

test("provides headers, context values and interceptors to functions", async (t) => {
  const key = createContextKey("nobody");
  const port = await serve(
    t,
    {
      get(_request, context) {
        context.responseHeader.set("X-Answer", `${context.requestHeader.get("x-ask")} ${context.values.get(key)}`);
        return {};
      },
    },
    {
      contextValues: (request) => createContextValues().set(key, request.path),
      interceptors: [
        (next) => (request) => {
          request.header.set("x-ask", `${request.header.get("x-ask")}!`);
          return next(request);
        },
      ],
    },
  );
  const { headers } = await ask(port, "/v1/a", { headers: { "X-Ask": "why" } });
  t.is(headers["x-answer"], "why! /v1/a");
});

test("sends streams as events or requested lines, and ends them when the client disconnects", async (t) => {
  let ended = 0;
  const port = await serve(t, {
    async *watch({ name }, { signal }) {
      try {
        yield { name: `${name} 1` };
        if (name === "short") {
          yield { name: `${name} 2` };
          return;
        }
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      } finally {
        ended++;
      }
    },
  });
  const lines = await ask(port, "/v1/short/events", { headers: { Accept: "application/jsonl" } });
  t.is(lines.headers["content-type"], "application/jsonl; charset=utf-8");
  t.deepEqual(
    lines.text
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { name: string }).name),
    ["short 1", "short 2"],
  );
  t.regex((await ask(port, "/v1/short/events")).text, /^data: \{/);
  const controller = new AbortController();
  const response = await fetch(`http://127.0.0.1:${port}/v1/long/events`, { signal: controller.signal });
  await response.body!.getReader().read();
  controller.abort();
  while (ended < 3) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.pass();
});

test("names the remedy for a body that was read before, and rejects two rpcs with one route", async (t) => {
  const app = express().use(express.json(), transcode({ routes: routesOf(echo) }));
  const { port } = await listenApp(t, app);
  t.is((await ask(port, "/v2", jsonPost("{}"))).status, 500);
  t.is((await ask(port, "/v1/a")).status, 200);
  t.throws(
    () =>
      transcode({
        routes(router) {
          router.service(PlainRoutesService, echo);
          router.service(AddedService, {});
          router.service(PlainRoutesService, echo);
        },
      }),
    { message: /ambiguous/ },
  );
});
