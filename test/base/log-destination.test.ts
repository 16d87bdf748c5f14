import test from "ava";
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { openLogDestination } from "../../src/base/logging/log-destination.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const failure = (code: string): Error => Object.assign(new Error(code), { code });

test("a line that cannot be written is dropped and counted, and the next one is written", (t) => {
  const written: string[] = [];
  let code: string | undefined = "ENOSPC";
  const destination = openLogDestination(-1, (_, bytes) => {
    if (code !== undefined) {
      throw failure(code);
    }
    // Like a system call, it may write only a part.
    const part = bytes.subarray(0, 3);
    written.push(Buffer.from(part).toString());
    return part.length;
  });
  destination.write("first\n");
  code = "EPIPE";
  destination.write("second\n");
  t.is(destination.lost(), 2);
  code = undefined;
  destination.write("third\n");
  t.is(written.join(""), "third\n");
  t.is(destination.lost(), 2);
});

const testPipe = testUnless(process.platform === "win32" ? "there are no named pipes" : undefined);

testPipe("buffers a limited number of lines for a slow reader, and counts the dropped ones", async (t) => {
  const path = join(await temporaryDirectory(t), "pipe");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  t.teardown(() => closeSync(fd));
  const destination = openLogDestination(fd);
  const lines = 3_000;
  const lineOf = (n: number): string => `${n} ${"x".repeat(1_000)}\n`;
  for (let n = 0; n < lines; n++) {
    destination.write(lineOf(n));
  }
  const lost = destination.lost();
  t.true(lost > 1_500 && lost < 2_000, String(lost));
  const bytes = Buffer.alloc(65_536);
  let text = "";
  const readAll = (): void => {
    try {
      for (;;) {
        text += bytes.toString("utf8", 0, readSync(fd, bytes));
      }
    } catch (error) {
      t.is((error as NodeJS.ErrnoException).code, "EAGAIN");
    }
  };
  await until(() => {
    readAll();
    return text.split("\n").length > lines - lost;
  });
  t.is(text, Array.from({ length: lines - lost }, (_, n) => lineOf(n)).join(""));
  destination.write("later\n");
  readAll();
  t.true(text.endsWith("later\n"));
  t.is(destination.lost(), lost);
});
