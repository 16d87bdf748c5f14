/** The values of --edge: compiled routes before the Express application, or the application alone. */
import test from "ava";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../helpers/nodes/free-port.js";
import { ask } from "../helpers/wire/plain-client.js";
import { startCli } from "../helpers/nodes/run-cli.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { version } from "../../src/base/version.js";

/** Returns the packages that `npm start` loads to respond to these paths. */
async function loadedFor(t: Teardown, paths: readonly string[]): Promise<string[]> {
  // Node.js writes the list of executed scripts there when it exits.
  const dir = await temporaryDirectory(t);
  const network = await startCli(t, ["devnet", "--rpc-port", `${await freePort()}`], { NODE_V8_COVERAGE: dir });
  const port = Number(new URL(network.ready.rpc).port);
  for (const path of paths) {
    await ask(port, path);
  }
  network.child.kill("SIGTERM");
  await network.ended;
  const texts = await Promise.all((await readdir(dir)).map((file) => readFile(join(dir, file), "utf8")));
  return ["express", "@connectrpc/connect-express"].filter((name) =>
    texts.some((text) => text.includes(`/node_modules/${name}/`)),
  );
}

test("serves /version without Express, but /docs and unknown paths with it", async (t) => {
  t.deepEqual(await loadedFor(t, ["/version", "/health", "/info"]), []);
  t.deepEqual(await loadedFor(t, ["/docs", "/nothing"]), ["express", "@connectrpc/connect-express"]);
});

test("serves all of HTTP/1.1 by the application with --edge express, within the same limits", async (t) => {
  const node = await startTestNode(t, { edge: "express", "rate-limit": "3", "rate-limit-exempt": "" });
  t.is((await ask(node.port, "/version")).text, `"${version}"`);
  t.is((await ask(node.port, "/nothing")).status, 404);
  const statuses = [];
  for (let i = 0; i < 4; i++) {
    statuses.push((await ask(node.port, "/publickey")).status);
  }
  t.deepEqual([...new Set(statuses)], [200, 429]);
});
