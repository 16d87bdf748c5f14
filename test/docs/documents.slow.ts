/** Runs every block of every document, and compares the output with the shown one. */
import test from "ava";
import { readFile } from "node:fs/promises";
import { listDocuments } from "./markdown.js";
import { runDocument } from "./run-document.js";

// Serial, because each document starts nodes, and an overloaded node rejects requests.
for (const path of await listDocuments()) {
  test.serial(`${path} shows the actual output`, async (t) => {
    t.timeout(600_000);
    const { failures, skipped, commands } = await runDocument(t, await readFile(path, "utf8"));
    t.log(`${commands} commands`, ...skipped.map((line) => `\n${path}:${line}`));
    t.deepEqual(
      failures.map((failure) => `${path}:${shorten(failure)}`),
      [],
    );
  });
}

/** Truncates a failure to 60 lines of 1,000 characters. */
function shorten(text: string): string {
  return text
    .split("\n")
    .slice(0, 60)
    .map((line) => line.slice(0, 1_000))
    .join("\n");
}
