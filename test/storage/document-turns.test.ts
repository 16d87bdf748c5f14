/** Large documents are written in portions, and yield to the event loop in between. */
import test from "ava";
import { writeContent } from "../../src/storage/changes/document-writing.js";
import type { DocumentRows } from "../../src/storage/changes/document-rows-store.js";
import type { ProgramContent } from "../../src/storage/programs/programs.js";
import { countTurns, createTally } from "../helpers/process/heap.js";
import type { Teardown } from "../helpers/nodes/teardown.js";

/** Writes a document to rows in memory, and tallies the fields and characters of each tick of the event loop. */
async function write(t: Teardown, text: string) {
  const tick = countTurns(t);
  const [fields, characters] = [createTally(tick), createTally(tick)];
  const rows: Partial<DocumentRows> = {
    insertFields(_, added) {
      fields.add(added.length);
      characters.add(added.reduce((sum, { before, value }) => sum + before.length + value.length, 0));
    },
    insertChunks(_, added) {
      characters.add(added.reduce((sum, chunk) => sum + chunk.text.length, 0));
    },
    saveText: () => Promise.resolve(),
    onWritten: () => undefined,
  };
  const content: ProgramContent = { encoding: "json", type: "object", text, sizeBytes: Buffer.byteLength(text) };
  await writeContent(rows as DocumentRows, content);
  return { fields, characters };
}

test("writes at most 500 of 60,000 members in one tick of the event loop", async (t) => {
  const members = Array.from({ length: 60_000 }, (_, i) => `"f${i}":${i}`);
  const { fields } = await write(t, `{${members.join()}}`);
  t.is(fields.all(), 60_000);
  t.true(fields.most() <= 500, String(fields.most()));
});

test("writes at most 128 KiB and a chunk of long arrays in one tick of the event loop", async (t) => {
  const array = JSON.stringify(Array.from({ length: 40_000 }, (_, i) => i));
  const { characters } = await write(t, `{"a":${array},"b":${array},"c":${array}}`);
  t.true(characters.all() > 600_000);
  t.true(characters.most() <= 160 * 1024, String(characters.most()));
});
