/** The build of `npm start` and `npm test`, which is skipped if no file has changed. */
import test from "ava";
import { spawnSync } from "node:child_process";
import { chmod, mkdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { delimiter, dirname, join, resolve } from "node:path";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const script = resolve("tools/build-if-changed.mjs");

test("builds after each kind of change, and only then, and again after a build that failed", async (t) => {
  const cwd = await temporaryDirectory(t);
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  };
  for (const path of ["src/a.ts", "src/b.ts", "gen/a.ts", "client/src/a.ts", "test/a.ts", "tools/a.ts"]) {
    await write(path, "1");
  }
  for (const path of ["package.json", "package-lock.json", "tsconfig.json", "client/tsconfig.json"]) {
    await write(path, "{}");
  }
  // Stands for npm, and counts the builds.
  await write(
    "bin/npm",
    "#!/bin/sh\necho built >> builds\nmkdir -p dist/program && : > dist/program/main.js\n[ ! -e fails ]\n",
  );
  await chmod(join(cwd, "bin/npm"), 0o755);
  const PATH = [join(cwd, "bin"), process.env["PATH"]].join(delimiter);
  const run = () => spawnSync(process.execPath, [script], { cwd, env: { PATH } }).status;
  const builds = async (): Promise<number> => (await readFile(join(cwd, "builds"), "utf8")).trim().split("\n").length;

  t.is(run(), 0);
  t.is(run(), 0);
  t.is(await builds(), 1);
  const changes: (() => Promise<void>)[] = [
    () => write("src/a.ts", "22"),
    // A file that replaces another one may be older than the build.
    () => utimes(join(cwd, "src/a.ts"), 1, 1),
    () => write("client/src/added.ts", ""),
    () => rm(join(cwd, "src/b.ts")),
    () => write("package-lock.json", '{"a":1}'),
    () => rm(join(cwd, "dist"), { recursive: true }),
  ];
  for (const [i, change] of changes.entries()) {
    await change();
    t.is(run(), 0);
    t.is(run(), 0);
    t.is(await builds(), i + 2, `change ${i}`);
  }
  await write("src/a.ts", "333");
  await write("fails", "");
  t.is(run(), 1);
  await rm(join(cwd, "fails"));
  t.is(run(), 0);
  t.is(await builds(), changes.length + 3);
});
