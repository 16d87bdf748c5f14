/** The bookstore example, run as its README describes. */
import test from "ava";
import { spawn } from "node:child_process";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { join, resolve } from "node:path";
import { ask, jsonPost } from "../helpers/wire/plain-client.js";
import { until } from "../helpers/nodes/until.js";
import { likeLists } from "../helpers/like-lists.js";

test("serves the bookstore by plain routes and Connect, with middleware that sees route paths", async (t) => {
  const example = resolve("examples/transcoding");
  const child = spawn(process.execPath, [join(example, "server.mjs")], { env: { ...process.env, PORT: "0" } });
  t.teardown(() => child.kill());
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await until(() => printed.includes("\n"));
  const port = Number(/:(\d+)\//.exec(printed)![1]);
  const book = { name: "shelves/poems/books/1", title: "Leaves", author: null };
  t.deepEqual(JSON.parse((await ask(port, "/v1/shelves/poems/books", jsonPost({ title: "Leaves" }))).text), book);
  t.deepEqual(JSON.parse((await ask(port, "/v1/shelves/poems/books/1")).text), book);
  t.deepEqual(JSON.parse((await ask(port, "/v1/books/1")).text), book);
  t.is((await ask(port, "/v1/books/2")).status, 404);
  const { BookstoreService } = (await import(join(example, "gen/bookstore/v1/bookstore_pb.js"))) as {
    BookstoreService: never;
  };
  const transport = createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: "1.1" });
  const { listBooks } = createClient(BookstoreService, transport) as Record<string, (asked: object) => Promise<object>>;
  likeLists(t, await listBooks!({ shelf: "poems" }), { books: [{ title: "Leaves" }] });
  await until(() => printed.includes("404"));
  t.deepEqual(printed.trim().split("\n").slice(1), [
    "POST /v1/shelves/:shelf/books 200",
    "GET /v1/shelves/:name_1/books/:name_3 200",
    "GET /v1/books/:number 200",
    "GET /v1/books/:number 404",
  ]);
});
