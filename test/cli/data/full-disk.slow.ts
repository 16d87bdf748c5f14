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

testMounted("backup names the disk of its folder", async (t) => {
  const { dir, disk } = await createFiles(t);
  t.regex(
    await runOnFullDisk(disk, "backup", join(disk, "saved"), "--data-dir", dir),
    new RegExp(`^gatehouse: The disk of ${disk}/\\S+ is full \\(SQLITE_FULL\\); free disk space, then try again\\.\n$`),
  );
});

testMounted("restore names the disk of the new directory, and does not blame the backup", async (t) => {
  const { disk, backup } = await createFiles(t);
  t.regex(
    await runOnFullDisk(disk, "restore", backup, "--data-dir", disk),
    new RegExp(
      `^gatehouse: The file \\S+ cannot be written to ${disk} \\(ENOSPC\\); free disk space there, or give another`,
    ),
  );
});

testMounted("database copy names the disk of its target", async (t) => {
  const { dir, disk } = await createFiles(t);
  t.regex(
    await runOnFullDisk(disk, "database", "copy", join(dir, "gatehouse.sqlite"), join(disk, "copy.sqlite")),
    new RegExp(
      `^(.*\n)?gatehouse: The (disk|database) (of )?${disk}/copy\\.sqlite\\S* (is full|cannot .* and has free space)`,
    ),
  );
});

testMounted("start names the disk of its database", async (t) => {
  const { dir, disk } = await createFiles(t);
  const ports = ["--rpc-port", "0", "--omni-port", "0", "--host", "127.0.0.1", "--log-level", "fatal"];
  t.regex(
    await runOnFullDisk(disk, "start", "--data-dir", dir, "--database", `sqlite:${disk}/a.sqlite`, ...ports),
    new RegExp(`^gatehouse: The (disk|database) (of )?${disk}/a\\.sqlite\\S* (is full|cannot .* and has free space)`),
  );
});
