/** Links of documents to code: each function to the file that declares it, and every folder of src from the architecture. */
import test from "ava";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { listDocuments } from "./markdown.js";

const page = await readFile("docs/internals/architecture.md", "utf8");

/** Returns true if a source file declares a name: as a function, value or type, or as a member of one. */
function declares(source: string, name: string): boolean {
  const statement = `\\b(?:function\\*?|const|let|class|interface|type|enum) ${name}\\b`;
  const member = `^ +(?:(?:readonly|async|get|static) |\\*)*${name}\\??(?:: |<|\\([^;]*\\{$|\\([^{}]*\\): )`;
  return new RegExp(`${statement}|${member}`, "m").test(source);
}

test("each linked function is declared in the linked file", async (t) => {
  let links = 0;
  for (const document of await listDocuments()) {
    const content = await readFile(document, "utf8");
    for (const [, name, target] of content.matchAll(/\[`(\w+)`\]\(([^)#]+\.ts)\)/g)) {
      const path = join(dirname(document), target!);
      t.true(declares(await readFile(path, "utf8"), name!), `${document}: ${name} is not declared in ${path}`);
      links++;
    }
  }
  t.true(links > 60);
});

test("the table of modules links every folder of src", async (t) => {
  const files = (await readdir("src", { recursive: true })).filter((file) => file.endsWith(".ts"));
  const folders = new Set(files.map((file) => dirname(join("src", file))));
  folders.delete("src");
  const linked = new Set([...page.matchAll(/\]\(\.\.\/\.\.\/(src\/[^)]+)\)/g)].map(([, folder]) => folder!));
  t.deepEqual(
    [...folders].filter((folder) => !linked.has(folder)),
    [],
  );
});
