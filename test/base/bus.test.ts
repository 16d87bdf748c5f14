import test from "ava";
import { createBus } from "../../src/node/lifecycle/bus.js";

interface Events {
  readonly block: { readonly number: number };
  readonly quiet: undefined;
}

test("all who listen hear of it, in their order, before the teller goes on", (t) => {
  const heard: string[] = [];
  const bus = createBus<Events>(() => t.fail());
  bus.on("block", ({ number }) => heard.push(`a${number}`));
  bus.on("block", ({ number }) => heard.push(`b${number}`));
  bus.emit("quiet", undefined);
  bus.emit("block", { number: 7 });
  t.deepEqual(heard, ["a7", "b7"]);
});

test("a listener that throws reaches neither the others nor the teller", (t) => {
  const heard: number[] = [];
  const failures: unknown[] = [];
  const bus = createBus<Events>((name, error) => failures.push([name, (error as Error).message]));
  bus.on("block", () => {
    throw new Error("deaf");
  });
  bus.on("block", ({ number }) => heard.push(number));
  bus.emit("block", { number: 1 });
  t.deepEqual(heard, [1]);
  t.deepEqual(failures, [["block", "deaf"]]);
});
