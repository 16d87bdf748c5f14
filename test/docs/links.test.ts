import test from "ava";
import { readFile } from "node:fs/promises";
import { startMember } from "../helpers/chain.js";
import { ask } from "../helpers/plain-client.js";

const readme = await readFile("README.md", "utf8");

test("every curl line of the README is answered by a node", async (t) => {
  const { port } = await startMember(t);
  const paths = [...readme.matchAll(/^\$ curl '?http:\/\/127\.0\.0\.1:53550(\/[^\s']*)/gm)].map(([, path]) => path!);
  t.true(paths.length >= 5);
  for (const path of paths) {
    const { status } = await ask(port, path);
    t.is(status, path.startsWith("/storage-program/") ? 404 : 200, path);
  }
});
