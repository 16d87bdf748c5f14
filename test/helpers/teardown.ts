import test from "ava";
import type { Teardown } from "./start-node.js";

/** What AVA's context is to one test, to all tests of a file: what is given to it is closed after the last one. */
export function fileTeardown(): Teardown {
  const closers: (() => unknown)[] = [];
  test.after.always(async () => {
    for (const close of closers.reverse()) {
      await close();
    }
  });
  return { teardown: (close) => closers.push(close) };
}
