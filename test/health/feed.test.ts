/** Listeners and timers of the health feed. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { getEventListeners } from "node:events";
import { HealthSnapshotSchema } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createHealthFeed } from "../../src/health/feed.js";

/** Creates a feed whose snapshot changes at every poll, with the shortest poll interval. */
function createRestlessFeed() {
  let mempoolSize = 0;
  return createHealthFeed(() => create(HealthSnapshotSchema, { mempoolSize: mempoolSize++ }), 0);
}

test("adds one listener to the signal of a watch, and removes it at the end", async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", note);
  t.teardown(() => process.off("warning", note));
  const feed = createRestlessFeed();
  const controller = new AbortController();
  const { signal } = controller;
  let changes = 0;
  for await (const _ of feed.watch(signal)) {
    t.is(getEventListeners(signal, "abort").length, 1);
    if (++changes === 3_000) {
      controller.abort();
    }
  }
  t.is(changes, 3_000);
  t.deepEqual(getEventListeners(signal, "abort"), []);
  t.deepEqual(warnings, []);
});

test("removes the listener when a watcher stops or the feed closes", async (t) => {
  const feed = createRestlessFeed();
  const { signal } = new AbortController();
  const watch = feed.watch(signal);
  t.false((await watch.next()).done);
  t.is(getEventListeners(signal, "abort").length, 1);
  await watch.return();
  t.deepEqual(getEventListeners(signal, "abort"), []);

  const other = feed.watch(signal);
  await other.next();
  await feed.close();
  for await (const _ of other);
  t.deepEqual(getEventListeners(signal, "abort"), []);
});

test("ends a waiting watch when its signal is aborted", async (t) => {
  const feed = createHealthFeed(() => create(HealthSnapshotSchema), 1_000_000);
  t.teardown(() => feed.close());
  const controller = new AbortController();
  const watch = feed.watch(controller.signal);
  await watch.next();
  const next = watch.next();
  controller.abort();
  t.true((await next).done);
});
