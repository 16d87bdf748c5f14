import test from "ava";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { RpcError } from "../../src/rpc/errors.js";
import { until } from "../helpers/nodes/until.js";
import { openIpcChannel, type IpcHandlers, type IpcChannel, type IpcEnd } from "../../src/workers/ipc.js";

const noHandlers = { calls: {}, streams: {}, notifications: {} } satisfies IpcHandlers;

/** Creates two connected ends. Messages are cloned, as between processes. */
function createEnds(): [IpcEnd, IpcEnd] {
  const listeners: [((message: unknown) => void)[], ((message: unknown) => void)[]] = [[], []];
  const endOf = (own: 0 | 1): IpcEnd => ({
    send(message) {
      const sent = structuredClone(message);
      setImmediate(() => listeners[own === 0 ? 1 : 0].forEach((listener) => listener(sent)));
    },
    onMessage: (listener) => void listeners[own].push(listener),
  });
  return [endOf(0), endOf(1)];
}

/** Opens a channel to a side with these handlers. */
function connect<Their extends IpcHandlers>(
  their: Their,
): { readonly channel: IpcChannel<Their>; readonly unexpected: unknown[] } {
  const [ownEnd, otherEnd] = createEnds();
  const unexpected: unknown[] = [];
  openIpcChannel(otherEnd, their, (error) => unexpected.push(error));
  return { channel: openIpcChannel<Their>(ownEnd, noHandlers, (error) => unexpected.push(error)), unexpected };
}

test("returns the response of the other side for each of many concurrent calls, with bytes unchanged", async (t) => {
  const { channel } = connect({
    ...noHandlers,
    calls: {
      async double(n: number) {
        await pause(10 - n);
        return 2 * n;
      },
      reverse: (bytes: Uint8Array) => bytes.toReversed(),
    },
  });
  t.deepEqual(await Promise.all([1, 2, 3].map((n) => channel.call("double", n))), [2, 4, 6]);
  t.deepEqual(await channel.call("reverse", new Uint8Array([1, 2])), new Uint8Array([2, 1]));
});

test("rethrows an RpcError unchanged, and other errors without their details", async (t) => {
  const { channel, unexpected } = connect({
    ...noHandlers,
    calls: {
      refuse: () => Promise.reject(new RpcError("RATE_LIMITED", "Too many.", 7, ["RateLimit", "r=0"])),
      stumble() {
        throw new Error("a secret");
      },
    },
  });
  const error = await t.throwsAsync(channel.call("refuse", undefined), { instanceOf: RpcError });
  const { reason, message, retryAfterS, headers } = error;
  t.deepEqual(
    { reason, message, retryAfterS, headers },
    { reason: "RATE_LIMITED", message: "Too many.", retryAfterS: 7, headers: ["RateLimit", "r=0"] },
  );
  t.deepEqual(unexpected, []);
  const stumbled = await t.throwsAsync(channel.call("stumble", undefined), { instanceOf: RpcError });
  t.is(stumbled.message, "Internal error");
  t.deepEqual(
    unexpected.map((error) => (error as Error).message),
    ["a secret"],
  );
});

test("aborts a canceled call on the other side", async (t) => {
  const wait = (_: undefined, signal: AbortSignal) => once(signal, "abort").then(() => "aborted");
  const { channel } = connect({ ...noHandlers, calls: { wait } });
  const controller = new AbortController();
  const call = channel.call("wait", undefined, controller.signal);
  setTimeout(() => controller.abort(), 5);
  t.is(await call, "aborted");
});

/** Creates a stream of numbers from 1 on, which counts its items and records its end. */
function createNumbers() {
  const produced = { count: 0, ended: false };
  return {
    produced,
    side: {
      ...noHandlers,
      streams: {
        async *numbers(last: number, signal: AbortSignal) {
          try {
            for (let n = 1; n <= last && !signal.aborted; n++) {
              produced.count++;
              yield n;
            }
            if (last === 0) {
              await new Promise((resolve) => signal.addEventListener("abort", resolve));
            }
            if (last < 0) {
              throw new RpcError("PRUNED", "There are none.");
            }
          } finally {
            produced.ended = true;
          }
        },
      },
    },
  };
}

test("produces stream items in order, on request, to the end", async (t) => {
  const { produced, side } = createNumbers();
  const { channel } = connect(side);
  const received: number[] = [];
  for await (const n of channel.stream("numbers", 5, new AbortController().signal)) {
    received.push(n);
    t.is(produced.count, n);
    await pause(2);
    t.is(produced.count, n);
  }
  t.deepEqual(received, [1, 2, 3, 4, 5]);
  t.true(produced.ended);
});

test("ends a stream on the other side when it is canceled or its caller disconnects", async (t) => {
  const { produced, side } = createNumbers();
  const { channel } = connect(side);
  for await (const n of channel.stream("numbers", 100, new AbortController().signal)) {
    if (n === 2) {
      break;
    }
  }
  await until(() => produced.ended);
  t.is(produced.count, 2);

  const waiting = createNumbers();
  const controller = new AbortController();
  const stream = connect(waiting.side).channel.stream("numbers", 0, controller.signal);
  const next = stream.next();
  setTimeout(() => controller.abort(), 5);
  t.deepEqual(await next, { value: undefined, done: true });
  t.true(waiting.produced.ended);
});

test("rethrows the error of a stream", async (t) => {
  const { channel, unexpected } = connect(createNumbers().side);
  const next = channel.stream("numbers", -1, new AbortController().signal).next();
  const failed = await t.throwsAsync(next, { instanceOf: RpcError });
  t.is(failed.reason, "PRUNED");
  t.deepEqual(unexpected, []);
});

test("delivers notifications, and rejects pending calls when the channel closes", async (t) => {
  const notified: string[] = [];
  const { channel } = connect({
    calls: { never: () => new Promise(() => undefined) },
    streams: {
      async *never() {
        await new Promise(() => undefined);
        yield 1;
      },
    },
    notifications: { word: (word: string) => void notified.push(word) },
  });
  channel.notify("word", "one");
  channel.notify("word", "two");
  const call = channel.call("never", undefined);
  const next = channel.stream("never", undefined, new AbortController().signal).next();
  await until(() => notified.length === 2);
  t.deepEqual(notified, ["one", "two"]);
  channel.close();
  await t.throwsAsync(call, { message: "The other process is gone." });
  await t.throwsAsync(next, { message: "The other process is gone." });
  await t.throwsAsync(channel.call("never", undefined), { message: "The other process is gone." });
});
