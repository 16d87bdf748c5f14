/** Every block of every document is run, or says why it is not; what comes is what is shown. */
import test from "ava";
import { readFile } from "node:fs/promises";
import { listDocuments } from "./documents.js";
import { runDocument } from "./run-document.js";

// One after the other: each starts nodes, and a node that shares two cores with many refuses work.
for (const path of await listDocuments()) {
  test.serial(`${path} shows what comes`, async (t) => {
    t.timeout(600_000);
    const { failures, skipped, commands } = await runDocument(t, await readFile(path, "utf8"));
    t.log(`${commands} commands`, ...skipped.map((line) => `\n${path}:${line}`));
    t.deepEqual(
      failures.map((failure) => `${path}:${shorten(failure)}`),
      [],
    );
  });
}

/** What a person reads. */
function shorten(text: string): string {
  return text
    .split("\n")
    .slice(0, 60)
    .map((line) => line.slice(0, 1_000))
    .join("\n");
}
