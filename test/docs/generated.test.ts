/** Checks that generated documents are up to date. `npm run docs` updates them. */
import test from "ava";
import { readFile } from "node:fs/promises";
import { generateDocs } from "../../tools/docs/generated.js";
import { options } from "../../src/config/options.js";

/** The content of a file without layout, such as the white space of JSON and the padding of tables. */
function contentOf(path: string, text: string): unknown {
  return path.endsWith(".json")
    ? JSON.parse(text)
    : text
        .replaceAll(/^\|.*\|$/gm, (row) => row.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---"))
        .replaceAll(/\n{2,}/g, "\n\n");
}

for (const [path, expected] of await generateDocs()) {
  test(`${path} is up to date`, async (t) => {
    t.deepEqual(contentOf(path, await readFile(path, "utf8")), contentOf(path, expected), "Run npm run docs.");
  });
}

test("docs/options.md has a row for each option", async (t) => {
  const page = await readFile("docs/options.md", "utf8");
  for (const { name, env } of options) {
    t.regex(page, new RegExp(`^\\| \`--${name}( [A-Z]+)?\` +\\| \`${env}\` +\\| `, "m"));
  }
});
