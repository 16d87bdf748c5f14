// Builds unless the last build was of the same files, so that `npm start` and `npm test` start at once. Any file that was
// added, removed, written or replaced makes a difference, also if it is older than the build.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const sources = ["src", "gen", "client/src", "test", "tools"];
const manifests = ["package.json", "package-lock.json", "tsconfig.json", "client/tsconfig.json"];
/** Written after a build, and removed with it. */
const stamp = "dist/built-from";

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? (entry.name === "node_modules" ? [] : filesBelow(path)) : [path];
  });
}

/** Returns a hash of the names, sizes and times of all files that a build reads. */
function fingerprint() {
  const hash = createHash("sha256");
  for (const path of [...sources.flatMap(filesBelow), ...manifests].sort()) {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

const before = fingerprint();
const isCurrent =
  existsSync("dist/program/main.js") && existsSync(stamp) && readFileSync(stamp, "utf8").trim() === before;
if (!isCurrent) {
  console.error("Building…");
  const { status } = spawnSync("npm", ["run", "--silent", "build"], {
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
  // The files as they were before, so that a change during the build leads to another one.
  writeFileSync(stamp, `${before}\n`);
}
