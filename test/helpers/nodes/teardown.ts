/** What is closed and removed after a test, or after the tests of a file. */
import test from "ava";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The part of AVA's context that closes what a test opened. */
export interface Teardown {
  teardown(close: () => unknown): void;
}

/** A directory that is gone after the test. */
export async function temporaryDirectory(t: Teardown): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

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
