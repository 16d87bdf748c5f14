import test from "ava";
import { readFile } from "node:fs/promises";
import { options } from "../../src/config/options.js";
import { startMember } from "../helpers/chain.js";
import { ask } from "../helpers/plain-client.js";

const readme = await readFile("README.md", "utf8");

test("the README's table has every option as the help has it", (t) => {
  const rows = readme
    .slice(readme.indexOf("<!-- options -->"), readme.indexOf("<!-- /options -->"))
    .split("\n")
    .filter((line) => line.startsWith("| `--"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const expected = options.map(({ name, value, env, fallback, description }) => [
    `\`--${name}${value === undefined ? "" : ` ${value}`}\``,
    `\`${env}\``,
    fallback === undefined || fallback === "" ? "" : `\`${fallback}\``,
    description,
  ]);
  t.deepEqual(rows, expected, `The table should be:\n${expected.map((row) => `| ${row.join(" | ")} |`).join("\n")}`);
});

test("every curl line of the README is answered by a node", async (t) => {
  const { port } = await startMember(t);
  const paths = [...readme.matchAll(/^\$ curl '?http:\/\/127\.0\.0\.1:53550(\/[^\s']*)/gm)].map(([, path]) => path!);
  t.true(paths.length >= 5);
  for (const path of paths) {
    const { status } = await ask(port, path);
    t.is(status, path.startsWith("/storage-program/") ? 404 : 200, path);
  }
});
