/** Streams over plain HTTP: events and JSON lines, resumption, and errors. */
import test from "ava";
import { EventSource } from "eventsource";
import { once } from "node:events";
import { AddedService } from "../../../gen/gatehouse/testing/v1/added_pb.js";
import { createEdge } from "../../../src/edge/edge.js";
import { RpcError } from "../../../src/rpc/errors.js";
import { serve } from "../../../src/rpc/service.js";
import { openSettings, startServices } from "../../helpers/nodes/edge-server.js";
import { ask } from "../../helpers/wire/plain-client.js";
import { fileTeardown } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";

const fileScope = fileTeardown();
const errors: unknown[] = [];
const outcomes: string[] = [];
let port: number;

/** Messages of a stream by its name; a cursor is the number of a message. */
const things = {
  async *missing() {
    await Promise.reject(new RpcError("NOT_FOUND", "There is no such thing."));
    yield {};
  },
  async *broken() {
    yield await Promise.resolve(createMessage(1));
    throw new RpcError("STATE_NOT_READY", "It is away.", 5);
  },
  async *secret() {
    yield await Promise.resolve(createMessage(1));
    throw new Error("the password is x");
  },
  async *nothing() {
    await Promise.resolve();
    yield* [];
  },
  async *counted(after: number) {
    for (let i = 1; i <= 3; i++) {
      yield await Promise.resolve(createMessage(after + i));
    }
  },
};

const createMessage = (place: number) => ({
  place: String(place),
  what: { case: "thingSeen" as const, value: { name: "a\nb", count: BigInt(place) } },
});

test.before(async () => {
  const services = [
    serve(AddedService, {
      getThing: () => ({}),
      watchThings: ({ name, after }) => things[name as keyof typeof things](Number(after)),
    }),
  ];
  const gate = createEdge({ ...openSettings, onFinished: ({ code }) => outcomes.push(code) });
  const onInternalError = (error: unknown): void => void errors.push(error);
  ({ port } = await startServices(fileScope, services, gate, { onInternalError }));
});

const acceptJsonLines = { headers: { accept: "application/jsonl" } };
const read = (name: string, request?: { headers: Record<string, string> }) =>
  ask(port, `/testing/watch/${name}`, request);

test.serial("sends events by kind to an EventSource, which resumes after a lost connection", async (t) => {
  const source = new EventSource(`http://127.0.0.1:${port}/testing/watch/counted?after=5`);
  t.teardown(() => source.close());
  const events: { readonly id: string; readonly count: number }[] = [];
  source.addEventListener("thingSeen", ({ lastEventId, data }) => {
    const { thingSeen } = JSON.parse(data as string) as { thingSeen: { name: string; count: number } };
    t.is(thingSeen.name, "a\nb");
    events.push({ id: lastEventId, count: thingSeen.count });
  });
  await until(() => events.length >= 6);
  source.close();
  t.deepEqual(
    events.slice(0, 6),
    [6, 7, 8, 9, 10, 11].map((count) => ({ id: String(count), count })),
  );
});

test.serial("responds with a normal error if a stream fails before its first message", async (t) => {
  for (const request of [undefined, acceptJsonLines]) {
    const { status, headers, text } = await read("missing", request);
    t.is(status, 404);
    t.is(headers["content-type"], "application/json; charset=utf-8");
    t.like(JSON.parse(text), { success: false, errorCode: "NOT_FOUND" });
  }
  const source = new EventSource(`http://127.0.0.1:${port}/testing/watch/missing`);
  const [error] = (await once(source, "error")) as [{ readonly code?: number }];
  t.is(error.code, 404);
  t.is(source.readyState, EventSource.CLOSED, "it does not ask again");
});

test.serial("sends a later error as the last event or line, without internal details", async (t) => {
  outcomes.length = 0;
  const body = '{"success":false,"error":"It is away.","errorCode":"STATE_NOT_READY","retryAfter":5}';
  t.true((await read("broken")).text.endsWith(`\n\nevent: failure\ndata: ${body}\n\n`));
  const [first, last, ...none] = (await read("broken", acceptJsonLines)).text.split("\n");
  t.like(JSON.parse(first!), { place: "1" });
  t.deepEqual([last, none], [body, [""]]);
  const { text } = await read("secret");
  t.regex(text, /event: failure\ndata: .*"INTERNAL_ERROR"/);
  t.false(text.includes("password"));
  t.deepEqual(errors.map(String), ["Error: the password is x"]);
  await until(() => outcomes.length === 3);
  t.deepEqual(outcomes, ["STATE_NOT_READY", "STATE_NOT_READY", "INTERNAL_ERROR"]);
});

test.serial("responds to an empty stream with an empty body", async (t) => {
  const { status, headers, text } = await read("nothing");
  t.deepEqual([status, text], [200, ""]);
  t.like(headers, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "private, no-store" });
});

test.serial("responds to HEAD as to GET, without a body", async (t) => {
  for (const [name, expected] of Object.entries({ nothing: 200, counted: 200, missing: 404 })) {
    const { status, text } = await ask(port, `/testing/watch/${name}`, { method: "HEAD" });
    t.deepEqual([status, text], [expected, ""], name);
  }
});
