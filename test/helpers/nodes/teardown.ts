/** Cleanup after a test, or after all tests of a file. */
import test from "ava";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The part of AVA's context that closes what a test opened. */
export interface Teardown {
  teardown(close: () => unknown): void;
}

/** Creates a directory that is removed after the test. */
export async function temporaryDirectory(t: Teardown): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Returns a teardown for all tests of a file. It closes everything after the last test. */
export function fileTeardown(): Teardown {
  const closers: (() => unknown)[] = [];
  test.after.always(async () => {
    for (const close of closers.reverse()) {
      await close();
    }
  });
  return { teardown: (close) => closers.push(close) };
}
