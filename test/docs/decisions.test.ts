/** The decision records: their list and their headings. */
import test from "ava";
import { readdir, readFile } from "node:fs/promises";

const folder = "docs/decisions";
const files = (await readdir(folder)).filter((name) => name !== "README.md").sort();
const list = await readFile(`${folder}/README.md`, "utf8");
test("the list has each decision once, in order", (t) => {
  const rows = [...list.matchAll(/^\| \[(\d{4})\]\(([^)]+)\) /gm)];
  t.deepEqual(
    rows.map(([, , name]) => name),
    files,
  );
  t.true(rows.every(([, number, name]) => name!.startsWith(`${number}-`)));
});

for (const name of files) {
  test(`${name} has the headings of a decision`, async (t) => {
    const text = await readFile(`${folder}/${name}`, "utf8");
    t.true(text.startsWith(`# ${name.slice(0, 4)}: `));
    const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!);
    t.deepEqual(headings.slice(0, 2), ["Context", "Decision"]);
    t.true(headings.includes("Alternatives"));
    const others = headings.slice(2);
    t.is(new Set(others).size, others.length);
    t.deepEqual(
      others.filter((heading) => !["Figures", "Consequences", "Alternatives"].includes(heading)),
      [],
    );
  });
}
