/** Worker processes that die early, or are still starting when the pool stops. */
import test, { type ExecutionContext } from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createProcessPool, type WorkerHandlers } from "../../src/workers/pool.js";
import type { Fate } from "../helpers/process/fragile-worker.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

async function open(t: ExecutionContext) {
  const file = join(await temporaryDirectory(t), "starts");
  await writeFile(file, "");
  const fate: { then: Fate["then"] } = { then: "serve" };
  const errors: string[] = [];
  const error = (_: object, message: string): void => void errors.push(message);
  const pool = createProcessPool<Fate, undefined, WorkerHandlers<Fate, undefined>>({
    count: 1,
    module: new URL("../helpers/process/fragile-worker.js", import.meta.url),
    start: () => ({ file, then: fate.then }),
    booted: () => undefined,
    handlersFor: () => ({ calls: {}, streams: {}, notifications: {} }),
    onJoin: () => undefined,
    onLeave: () => undefined,
    onState: () => undefined,
    onInternalError: (thrown) => t.fail(String(thrown)),
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error },
  });
  t.teardown(() => pool.drain(0));
  const starts = async (): Promise<string[]> => (await readFile(file, "utf8")).split("\n").slice(0, -1);
  const listen = () => pool.listen({ host: "127.0.0.1", port: 0 });
  return { pool, fate, errors, starts, listen };
}

test.serial("doubles the pause before each replacement of a worker that keeps dying", async (t) => {
  const { fate, starts, listen } = await open(t);
  fate.then = "die";
  await listen();
  await pause(4_000);
  const { length } = await starts();
  // After 0.1, 0.2, 0.4, 0.8 and 1.6 s. With a constant pause there would be dozens.
  t.true(length >= 3 && length <= 6, String(length));
});

test.serial("logs no error if the pool stops during a replacement", async (t) => {
  const { pool, fate, errors, starts, listen } = await open(t);
  fate.then = "die";
  await listen();
  fate.then = "hang";
  await until(async () => (await starts()).at(-1) === "hang");
  t.deepEqual(errors, ["Worker 1 ended (code 3) and is replaced."]);
  await pool.drain(0);
  await pause(500);
  t.is(errors.length, 1, errors.join());
});
