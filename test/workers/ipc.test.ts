import test from "ava";
import { setTimeout as pause } from "node:timers/promises";
import { RpcError } from "../../src/rpc/errors.js";
import { openIpcChannel, type IpcHandlers, type IpcChannel, type IpcEnd } from "../../src/workers/ipc.js";

const nobody = { calls: {}, streams: {}, notifications: {} } satisfies IpcHandlers;

/** Two ends; what goes from one to the other is cloned, as between processes. */
function channel(): [IpcEnd, IpcEnd] {
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

/** An end that asks one which answers so. */
function connect<Their extends IpcHandlers>(
  their: Their,
): { readonly wire: IpcChannel<Their>; readonly unexpected: unknown[] } {
  const [one, other] = channel();
  const unexpected: unknown[] = [];
  openIpcChannel(other, their, (error) => unexpected.push(error));
  return { wire: openIpcChannel<Their>(one, nobody, (error) => unexpected.push(error)), unexpected };
}

test("a call has the answer of the other side, bytes as bytes, and many at a time have each their own", async (t) => {
  const { wire } = connect({
    ...nobody,
    calls: {
      async double(n: number) {
        await pause(10 - n);
        return 2 * n;
      },
      reverse: (bytes: Uint8Array) => bytes.toReversed(),
    },
  });
  t.deepEqual(await Promise.all([1, 2, 3].map((n) => wire.call("double", n))), [2, 4, 6]);
  t.deepEqual(await wire.call("reverse", new Uint8Array([1, 2])), new Uint8Array([2, 1]));
});

test("a failure is thrown as it was; of what was none, the other side alone hears why", async (t) => {
  const { wire, unexpected } = connect({
    ...nobody,
    calls: {
      refuse: () => Promise.reject(new RpcError("RATE_LIMITED", "Too many.", 7, ["RateLimit", "r=0"])),
      stumble() {
        throw new Error("a secret");
      },
    },
  });
  const refused = await t.throwsAsync(wire.call("refuse", undefined), { instanceOf: RpcError });
  const { reason, message, retryAfterS, headers } = refused;
  t.deepEqual(
    { reason, message, retryAfterS, headers },
    { reason: "RATE_LIMITED", message: "Too many.", retryAfterS: 7, headers: ["RateLimit", "r=0"] },
  );
  t.deepEqual(unexpected, []);
  const stumbled = await t.throwsAsync(wire.call("stumble", undefined), { instanceOf: RpcError });
  t.is(stumbled.message, "Internal error");
  t.deepEqual(
    unexpected.map((error) => (error as Error).message),
    ["a secret"],
  );
});

test("who leaves a call aborts it there", async (t) => {
  const left = new Promise<void>((resolve) => {
    const { wire } = connect({
      ...nobody,
      calls: {
        async wait(_: undefined, signal: AbortSignal) {
          await new Promise((end) => signal.addEventListener("abort", end));
          resolve();
        },
      },
    });
    const controller = new AbortController();
    void wire.call("wait", undefined, controller.signal);
    setTimeout(() => controller.abort(), 5);
  });
  await t.notThrowsAsync(left);
});

/** Numbers from 1 on; it counts those that were made, and notes its end. */
function createNumbers() {
  const seen = { made: 0, ended: false };
  return {
    seen,
    side: {
      ...nobody,
      streams: {
        async *numbers(last: number, signal: AbortSignal) {
          try {
            for (let n = 1; n <= last && !signal.aborted; n++) {
              seen.made++;
              yield n;
            }
            if (last === 0) {
              await new Promise((resolve) => signal.addEventListener("abort", resolve));
            }
            if (last < 0) {
              throw new RpcError("PRUNED", "There are none.");
            }
          } finally {
            seen.ended = true;
          }
        },
      },
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    await pause(1);
  }
}

test("a stream is made as it is taken, in its order, and ends", async (t) => {
  const { seen, side } = createNumbers();
  const { wire } = connect(side);
  const taken: number[] = [];
  for await (const n of wire.stream("numbers", 5, new AbortController().signal)) {
    taken.push(n);
    t.is(seen.made, n);
    await pause(2);
    t.is(seen.made, n);
  }
  t.deepEqual(taken, [1, 2, 3, 4, 5]);
  t.true(seen.ended);
});

test("a stream that is left, or waits when its caller goes, ends there", async (t) => {
  const { seen, side } = createNumbers();
  const { wire } = connect(side);
  for await (const n of wire.stream("numbers", 100, new AbortController().signal)) {
    if (n === 2) {
      break;
    }
  }
  await until(() => seen.ended);
  t.is(seen.made, 2);

  const waiting = createNumbers();
  const controller = new AbortController();
  const stream = connect(waiting.side).wire.stream("numbers", 0, controller.signal);
  const next = stream.next();
  setTimeout(() => controller.abort(), 5);
  t.deepEqual(await next, { value: undefined, done: true });
  t.true(waiting.seen.ended);
});

test("a stream that fails fails so here", async (t) => {
  const { wire, unexpected } = connect(createNumbers().side);
  const next = wire.stream("numbers", -1, new AbortController().signal).next();
  const failed = await t.throwsAsync(next, { instanceOf: RpcError });
  t.is(failed.reason, "PRUNED");
  t.deepEqual(unexpected, []);
});

test("what is told is heard; a wire that is cut leaves nobody waiting", async (t) => {
  const heard: string[] = [];
  const { wire } = connect({
    calls: { never: () => new Promise(() => undefined) },
    streams: {
      async *never() {
        await new Promise(() => undefined);
        yield 1;
      },
    },
    notifications: { word: (word: string) => void heard.push(word) },
  });
  wire.notify("word", "one");
  wire.notify("word", "two");
  const call = wire.call("never", undefined);
  const next = wire.stream("never", undefined, new AbortController().signal).next();
  await until(() => heard.length === 2);
  t.deepEqual(heard, ["one", "two"]);
  wire.close();
  await t.throwsAsync(call, { message: "The other process is gone." });
  await t.throwsAsync(next, { message: "The other process is gone." });
  await t.throwsAsync(wire.call("never", undefined), { message: "The other process is gone." });
});
