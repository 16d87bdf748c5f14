/** The feed of health: what watching it leaves behind. */
import { create } from "@bufbuild/protobuf";
import test from "ava";
import { getEventListeners } from "node:events";
import { HealthSnapshotSchema } from "../../gen/gatehouse/health/v1/health_pb.js";
import { createHealthFeed } from "../../src/health/feed.js";

/** A feed that sees another snapshot at every look, and looks as often as it can. */
function createRestlessFeed() {
  let mempoolSize = 0;
  return createHealthFeed(() => create(HealthSnapshotSchema, { mempoolSize: mempoolSize++ }), 0);
}

test("a watch has one listener on its signal, however many changes it tells, and none when it is over", async (t) => {
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

test("a watcher that goes by itself leaves no listener, nor one whose feed is closed", async (t) => {
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

test("a watch whose signal is aborted while it waits ends at once", async (t) => {
  const feed = createHealthFeed(() => create(HealthSnapshotSchema), 1_000_000);
  t.teardown(() => feed.close());
  const controller = new AbortController();
  const watch = feed.watch(controller.signal);
  await watch.next();
  const next = watch.next();
  controller.abort();
  t.true((await next).done);
});
