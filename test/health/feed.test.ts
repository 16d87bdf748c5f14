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

test("keeps no listener on the signal of a watch", async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", note);
  t.teardown(() => process.off("warning", note));
  const feed = createRestlessFeed();
  const controller = new AbortController();
  const { signal } = controller;
  let changes = 0;
  for await (const _ of feed.watch(signal)) {
    t.is(getEventListeners(signal, "abort").length, 0);
    if (++changes === 3_000) {
      controller.abort();
    }
  }
  t.is(changes, 3_000);
  t.deepEqual(getEventListeners(signal, "abort"), []);
  t.deepEqual(warnings, []);
});

test("ends a watch when the feed closes", async (t) => {
  const feed = createRestlessFeed();
  const { signal } = new AbortController();
  const watch = feed.watch(signal);
  await watch.next();
  await feed.close();
  for await (const _ of watch);
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
  t.deepEqual(getEventListeners(controller.signal, "abort"), []);
});

test("begins each watch with a fresh snapshot, without a change", async (t) => {
  let uptimeS = 0;
  const feed = createHealthFeed(() => create(HealthSnapshotSchema, { uptimeS: uptimeS++ }), 1_000_000);
  t.teardown(() => feed.close());
  for (let expected = 0; expected < 3; expected++) {
    const watch = feed.watch(new AbortController().signal);
    t.is((await watch.next()).value?.uptimeS, expected);
  }
});
