/** Programs that check the test vectors of examples/vectors. */
import type { ExecutionContext } from "ava";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ForeignProgram } from "../nodes/foreign.js";
import { temporaryDirectory } from "../nodes/teardown.js";

/** Checks that a program accepts the vectors, and detects a changed signature in a copy of them. */
export async function checkVectors(t: ExecutionContext, run: (folder: string) => ForeignProgram): Promise<void> {
  const { code, stdout, stderr } = await run("examples/vectors").ended;
  t.is(code, 0, stderr);
  t.regex(stdout, /^1\d\d checks passed\n$/);

  const copy = await temporaryDirectory(t);
  await cp("examples/vectors", copy, { recursive: true });
  const path = join(copy, "transactions.json");
  const content = JSON.parse(await readFile(path, "utf8")) as {
    readonly transactions: readonly { readonly name: string; signature: string }[];
  };
  const changed = content.transactions.find(({ name }) => name === "of another sender")!;
  changed.signature = changed.signature.replace(/^../, (byte) => (byte === "00" ? "01" : "00"));
  await writeFile(path, JSON.stringify(content));
  const wrong = await run(copy).ended;
  t.is(wrong.code, 1);
  t.regex(wrong.stderr, /of another sender: the signature is\n/);
}
