/** What of the documents is generated, as it is committed; `npm run docs` puts it right. */
import test from "ava";
import { readFile } from "node:fs/promises";
import { generateDocs } from "../../scripts/docs/generated.js";
import { options } from "../../src/config/options.js";

for (const [path, expected] of await generateDocs()) {
  test(`${path} says what is declared`, async (t) => {
    t.is(await readFile(path, "utf8"), expected, "npm run docs writes it.");
  });
}

test("each option is one row of its page", async (t) => {
  const page = await readFile("docs/options.md", "utf8");
  for (const { name, env } of options) {
    t.regex(page, new RegExp(`^\\| \`--${name}( [A-Z]+)?\` +\\| \`${env}\` +\\| `, "m"));
  }
});
