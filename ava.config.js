import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// One PostgreSQL server for all files of a run. It starts when a file first needs it, and ends with this process.
const socket = join(mkdtempSync(join(tmpdir(), "gatehouse-test-")), "postgres");
const keeper = spawn(process.execPath, ["dist/test/helpers/databases/postgres-keeper.js", socket], {
  stdio: ["pipe", "ignore", "inherit"],
});
keeper.unref();
keeper.stdin.unref();

export default {
  files: ["dist/test/**/*.test.js"],
  environmentVariables: { TEST_POSTGRES: socket },
  timeout: "2m",
  workerThreads: false,
  // Two processors: a file that waits leaves its own to the third.
  concurrency: 3,
  snapshotDir: "test/snapshots",
};
