/** Commands on a full disk: the error names the disk. Only on Linux, where a test can create such a disk. */
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { testKey } from "../../helpers/chain/keys.js";
import { cleanEnvironment, cliPath, runCliProcess } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { testUnless } from "../../helpers/nodes/when.js";
import { afterMounting, whyNotMounted } from "../../helpers/process/programs.js";

const testMounted = testUnless(whyNotMounted("mount -t tmpfs tmpfs /mnt"));

/** Runs a command with a disk of 64 KiB mounted at a path. Returns its stderr. */
async function runOnFullDisk(disk: string, ...args: string[]): Promise<string> {
  const mount = `mount -t tmpfs -o size=64k,mode=700 tmpfs ${disk}`;
  const [command, ...rest] = [...afterMounting(mount), process.execPath, cliPath, ...args];
  return await new Promise((resolve) => {
    execFile(command!, rest, { env: cleanEnvironment() }, (_error, _stdout, stderr) => resolve(stderr));
  });
}

/** Creates a stopped node with a database, an empty mount point, and a backup. */
async function createFiles(t: Teardown) {
  const dir = await authorityDirectory(t, testKey(1));
  await (await startTestNode(t, { genesis: "genesis.json" }, dir)).stop();
  const parent = await temporaryDirectory(t);
  const [disk, backup] = [join(parent, "disk"), join(parent, "backup")];
  await mkdir(disk);
  await runCliProcess(["backup", backup, "--data-dir", dir]);
  return { dir, disk, backup };
}

const isFull = "(is full|cannot .* and has free space)";

for (const [title, argsOf, message] of [
  [
    "backup names the disk of its folder",
    ({ disk, dir }) => ["backup", join(disk, "saved"), "--data-dir", dir],
    "The disk of DISK/\\S+ is full \\(SQLITE_FULL\\); free disk space, then try again\\.\n$",
  ],
  [
    "restore names the disk of the new directory, and does not blame the backup",
    ({ disk, backup }) => ["restore", backup, "--data-dir", disk],
    "The file \\S+ cannot be written to DISK \\(ENOSPC\\); free disk space there, or give another",
  ],
  [
    "database copy names the disk of its target",
    ({ disk, dir }) => ["database", "copy", join(dir, "gatehouse.sqlite"), join(disk, "copy.sqlite")],
    `The (disk|database) (of )?DISK/copy\\.sqlite\\S* ${isFull}`,
  ],
  [
    "start names the disk of its database",
    ({ disk, dir }) => [
      ...["start", "--data-dir", dir, "--database", `sqlite:${disk}/a.sqlite`, "--log-level", "fatal"],
      ...["--rpc-port", "0", "--omni-port", "0", "--host", "127.0.0.1"],
    ],
    `The (disk|database) (of )?DISK/a\\.sqlite\\S* ${isFull}`,
  ],
] as readonly (readonly [string, (files: Awaited<ReturnType<typeof createFiles>>) => string[], string])[]) {
  testMounted(title, async (t) => {
    const files = await createFiles(t);
    const stderr = await runOnFullDisk(files.disk, ...argsOf(files));
    t.regex(stderr, new RegExp(`^(.*\n)?gatehouse: ${message.replace("DISK", files.disk)}`));
  });
}
