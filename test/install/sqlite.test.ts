/** The message of `npm ci` if SQLite could not be compiled. */
import test from "ava";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";

const script = resolve("tools/install/sqlite.mjs");

test("prints nothing if SQLite can be loaded", (t) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  t.deepEqual({ status, stdout, stderr }, { status: 0, stdout: "", stderr: "" });
});

test("names the missing programs, and how to install them", async (t) => {
  const cwd = await temporaryDirectory(t);
  const { status, stderr } = spawnSync(process.execPath, [script], { cwd, encoding: "utf8", env: { PATH: cwd } });
  t.is(status, 1);
  t.is(
    stderr,
    "SQLite could not be compiled, because Python 3 and make and a C++ compiler are not installed; install Python 3, " +
      "make and a C++ compiler (on Debian: apt-get install python3 make g++), then run npm ci again.\n",
  );
});
