/** The architecture page leads to what is there: each function to its file, each room to its folder. */
import test from "ava";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import ts from "typescript";

const page = await readFile("docs/architecture.md", "utf8");

/** Names that a source file declares, at any depth. */
async function declaredNames(path: string): Promise<Set<string>> {
  const source = ts.createSourceFile(path, await readFile(path, "utf8"), ts.ScriptTarget.Latest, true);
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    const { name } = node as { readonly name?: ts.Node };
    if (name !== undefined && ts.isIdentifier(name) && !ts.isPropertyAccessExpression(node)) {
      names.add(name.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

test("each function that a walk names is declared where its link leads", async (t) => {
  const links = [...page.matchAll(/\[`(\w+)`\]\(([^)#]+\.ts)\)/g)];
  t.true(links.length > 30);
  for (const [, name, target] of links) {
    const path = normalize(join("docs", target!));
    t.true((await declaredNames(path)).has(name!), `${name} is not declared in ${path}`);
  }
});

test("each room has its line, and no line is without a room", async (t) => {
  const files = (await readdir("src", { recursive: true })).filter((file) => file.endsWith(".ts"));
  const rooms = new Set(files.map((file) => dirname(join("src", file))));
  rooms.delete("src");
  const lines = new Set([...page.matchAll(/^\| \[(src\/[^\]]+)\]/gm)].map(([, room]) => room!));
  t.deepEqual([...lines].sort(), [...rooms].sort());
});
