/** The bundle that is shipped: finds its assets, threads and worker processes from other files than the compiled ones. */
import test from "ava";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { shippedPath, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { startTestNode } from "../helpers/nodes/start-node.js";
import { ask } from "../helpers/wire/plain-client.js";

test("the bundle serves the same documents and pages, by worker processes too", async (t) => {
  const compiled = await startTestNode(t);
  for (const workers of ["1", "2"]) {
    const { port } = await startNodeProcess(t, await temporaryDirectory(t), ["--workers", workers], [], shippedPath);
    for (const path of ["/version", "/openapi.json", "/docs", "/explore", "/latest"]) {
      const { status, text } = await ask(port, path);
      t.is(status, 200, path);
      t.is(text, (await ask(compiled.port, path)).text, path);
    }
  }
});

test("the bundle has a file for each thread and each kind of process", async (t) => {
  const files = await readdir("dist/src", { recursive: true });
  const workers = files.filter((file) => file.endsWith("worker.js"));
  t.true(workers.length > 4);
  t.deepEqual(
    workers.filter((file) => !existsSync(join("dist/program", file))),
    [],
  );
});
