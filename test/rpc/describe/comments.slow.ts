/** A node without a valid descriptor set in its package serves documents without comments. */
import test from "ava";
import { copyFile, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../../helpers/wire/plain-client.js";
import { startCli } from "../../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";

const warning = "API descriptions have no comments";

/** Starts a node from a separate package. */
async function startCopy(t: Teardown, putImage: (path: string) => Promise<unknown>) {
  const root = await temporaryDirectory(t);
  for (const name of ["package.json", "dist/src", "dist/gen", "dist/assets"]) {
    await cp(name, join(root, name), { recursive: true });
  }
  await symlink(resolve("node_modules"), join(root, "node_modules"));
  await mkdir(join(root, "gen"));
  await putImage(join(root, "gen/contract.binpb"));
  const ports = ["--rpc-port", "0", "--omni-port", "0"];
  const args = ["start", "--data-dir", join(root, "data"), "--host", "127.0.0.1", "--log-level", "warn", ...ports];
  const node = await startCli(t, args, {}, [], join(root, "dist/src/main.js"));
  return { node, root };
}

interface Described {
  readonly paths: Readonly<
    Record<string, { readonly get?: { readonly summary: string; readonly description?: string } }>
  >;
}

/** Repeats a request while the node is overloaded, as it may be after its start. */
async function askAgain(...request: Parameters<typeof ask>): ReturnType<typeof ask> {
  for (;;) {
    const answer = await ask(...request);
    if (answer.status !== 503) {
      return answer;
    }
    await sleep(200);
  }
}

async function readDocuments(port: number) {
  const openApi = await askAgain(port, "/openapi.json");
  const docs = await askAgain(port, "/docs");
  const discover = '{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}';
  const openRpc = await askAgain(port, "/", { method: "POST", body: discover });
  return { openApi, docs, openRpc };
}

for (const [title, putImage] of [
  ["missing", () => Promise.resolve()],
  ["empty", (path: string) => writeFile(path, "")],
  ["damaged", (path: string) => writeFile(path, Buffer.alloc(1000, 0xff))],
  ["a directory", (path: string) => mkdir(path)],
] as const) {
  test(`serves documents without comments, and warns once, if the descriptor set is ${title}`, async (t) => {
    const { node, root } = await startCopy(t, putImage);
    for (let round = 0; round < 2; round++) {
      const { openApi, docs, openRpc } = await readDocuments(node.port);
      t.is(openApi.status, 200);
      const { paths } = JSON.parse(openApi.text) as Described;
      t.true(Object.keys(paths).length > 25);
      t.is(paths["/version"]?.get?.summary, "GetVersion");
      t.is(paths["/version"]?.get?.description, undefined);
      t.is(docs.status, 200);
      t.true(docs.text.split("<h3 ").length > 25);
      t.like(JSON.parse(openRpc.text), { result: { openrpc: "1.3.2" } });
      for (const { text } of [openApi, docs, openRpc]) {
        t.false(text.includes(root));
      }
    }
    const lines = `${node.stdout()}${node.stderr()}`.split("\n").filter((line) => line.includes(warning));
    t.is(lines.length, 1, node.stderr());
  });
}

test("serves documents with the contract's comments, without a warning, if the descriptor set exists", async (t) => {
  const { node } = await startCopy(t, (path) => copyFile("gen/contract.binpb", path));
  const { paths } = JSON.parse((await readDocuments(node.port)).openApi.text) as Described;
  t.like(paths["/version"]?.get, { summary: "Returns the node version", description: "Returns the node version." });
  t.false(`${node.stdout()}${node.stderr()}`.includes(warning));
});
