/** Slashes and escapes in the path of every route and page, on both edges and HTTP versions. */
import test from "ava";
import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { ask, askJson, type PlainRequest } from "../../helpers/wire/plain-client.js";
import { startMember } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";

const pages = ["/status", "/status/data", "/explore", "/latest", "/docs", "/openapi.json"];

const values: Readonly<Record<string, string>> = {
  number: "0",
  index: "0",
  storageAddress: `stor-${"0".repeat(40)}`,
};

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
}

/** Spellings of a path that mean the same route. */
const spellings: Readonly<Record<string, (path: string) => string>> = {
  "two slashes at the front": (path) => `/${path}`,
  "three slashes at the front": (path) => `//${path}`,
  "a slash at the end": (path) => (path === "/" ? "//" : `${path}/`),
  "an escaped letter": (path) => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  "all of these": (path) =>
    `//${path.replace(/[a-z]$/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}${path === "/" ? "" : "/"}`,
};

const entries = Object.entries(spellings);

interface Outcome {
  readonly status: number;
  readonly type: unknown;
  readonly error: unknown;
}

type Send = (path: string, request: PlainRequest) => Promise<Outcome>;

function outcomeOf(status: number, type: unknown, body: string): Outcome {
  const isJson = String(type).startsWith("application/json");
  return { status, type, error: isJson ? (JSON.parse(body) as { error?: unknown } | null)?.error : undefined };
}

const overHttp1 =
  (port: number): Send =>
  async (path, request) => {
    const { status, headers, text: body } = await ask(port, path, request);
    return outcomeOf(status, headers["content-type"], body);
  };

async function overHttp2(t: Teardown, port: number): Promise<Send> {
  const session = connect(`http://127.0.0.1:${port}`);
  t.teardown(() => session.destroy());
  await once(session, "connect");
  return async (path, { method = "GET" }) => {
    const stream = session.request({ ":path": path, ":method": method });
    const responded = once(stream, "response") as Promise<[Record<string, unknown>]>;
    const [[headers], body] = await Promise.all([responded, text(stream)]);
    const { ":status": status, "content-type": type } = headers;
    return outcomeOf(status as number, type, body);
  };
}

for (const edge of ["compiled", "express"]) {
  test(`the ${edge} edge finds every route and page with slashes and escapes`, async (t) => {
    const { port } = await startMember(t, { edge, "rate-limit": "0" });
    const { paths } = await askJson<OpenApi>(port, "/openapi.json");
    const routes = Object.entries(paths).flatMap(([template, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => {
        const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "x");
        const isStream = JSON.stringify(responses).includes("text/event-stream");
        // A stream does not end; the list of its methods is an answer as well.
        return { path, request: { method: isStream ? "PUT" : method.toUpperCase() } };
      }),
    );
    t.true(routes.length > 40, String(routes.length));
    const sends = [overHttp1(port), await overHttp2(t, port)];
    const targets = [...routes, ...pages.map((page) => ({ path: page, request: { method: "GET" } }))];
    for (const send of sends) {
      for (const { path, request } of targets) {
        const expected = await send(path, request);
        t.not(expected.error, "There is nothing at this path.", path);
        const compare = async ([name, spell]: (typeof entries)[number]): Promise<void> => {
          const spelled = spell(path);
          let found = await send(spelled, request);
          if (found.status === 308) {
            t.true(pages.includes(path) && spelled.endsWith("/"), spelled);
            found = await send(spelled.slice(0, -1), request);
          }
          t.deepEqual(found, expected, `${request.method} ${path} with ${name}`);
        };
        await Promise.all(entries.map(compare));
      }
    }
  });
}

test("a page with a slash at the end leads to the page, from which its links work", async (t) => {
  const { rpcUrl } = await startMember(t);
  for (const start of ["/status/", "//status/", "/%73tatus/"]) {
    const response = await fetch(`${rpcUrl}${start}`);
    t.is(response.status, 200);
    const health = await fetch(new URL("health", response.url));
    t.is(health.status, 200, health.url);
  }
});
