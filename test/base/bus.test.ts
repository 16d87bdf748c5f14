import test from "ava";
import { createBus } from "../../src/node/lifecycle/events.js";

interface Events {
  readonly block: { readonly number: number };
  readonly quiet: undefined;
}

test("emit calls all listeners synchronously, in order", (t) => {
  const received: string[] = [];
  const bus = createBus<Events>(() => t.fail());
  bus.on("block", ({ number }) => received.push(`a${number}`));
  bus.on("block", ({ number }) => received.push(`b${number}`));
  bus.emit("quiet", undefined);
  bus.emit("block", { number: 7 });
  t.deepEqual(received, ["a7", "b7"]);
});

test("a listener that throws affects neither other listeners nor the emitter", (t) => {
  const received: number[] = [];
  const failures: unknown[] = [];
  const bus = createBus<Events>((name, error) => failures.push([name, (error as Error).message]));
  bus.on("block", () => {
    throw new Error("failed");
  });
  bus.on("block", ({ number }) => received.push(number));
  bus.emit("block", { number: 1 });
  t.deepEqual(received, [1]);
  t.deepEqual(failures, [["block", "failed"]]);
});
