/** The intercepted disk: a power cut undoes exactly the writes that were not synced, and a full disk rejects writes. */
import test from "ava";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import knex from "knex";
import { type Disk, type Fullness, interceptDisks } from "../../tools/campaign/disk/disk.js";
import type { Chance } from "../helpers/wire/hostile-values.js";
import { cleanEnvironment } from "../helpers/nodes/run-cli.js";
import { run } from "../helpers/process/programs.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";

const directory = mkdtempSync(join(tmpdir(), "gatehouse-disk-"));
const disk = interceptDisks(directory, true);
const testIntercepted = testUnless(disk.unavailableReason);
test.after.always(() => rm(directory, { recursive: true, force: true }));

/** A fixed chance: this many of 10 unsynced writes reach the disk. */
const keeping = (ofTen: number): Chance => ({
  below: () => 5,
  pick: () => ofTen as never,
  weigh: () => undefined as never,
  bytes: () => new Uint8Array(),
});

interface Writing {
  readonly synchronous: string;
  readonly rows: number;
  readonly journal?: string;
  /** Makes the disk full after the first row. */
  readonly filled?: Fullness;
}

/** Starts a process that inserts rows into SQLite and prints a line for each. Kills it after `rows` lines. */
async function write(
  t: Teardown,
  home: string,
  intercepted: Disk,
  { synchronous, rows, journal = "WAL", filled }: Writing,
): Promise<string[]> {
  const script = `
    const { default: knex } = await import("knex");
    const db = knex({ client: "sqlite3", connection: { filename: process.argv[1] }, useNullAsDefault: true, pool: { max: 1 } });
    await db.raw("PRAGMA journal_mode = ${journal}");
    await db.raw("PRAGMA synchronous = ${synchronous}");
    await db.raw("CREATE TABLE IF NOT EXISTS rows (n INTEGER, text TEXT)");
    for (;;) {
      await db("rows").insert({ n: 1, text: "x".repeat(3000) }).then(() => console.log("written"), (error) => console.log(error.code));
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script, join(home, "a.sqlite")], {
    env: cleanEnvironment(await intercepted.environmentOf(home)),
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.teardown(() => child.kill("SIGKILL"));
  let text = "";
  for await (const piece of child.stdout) {
    text += String(piece);
    if (filled !== undefined) {
      await intercepted.setFull(home, filled);
    }
    if (text.split("\n").length > rows) {
      break;
    }
  }
  const ended = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
  child.kill("SIGKILL");
  await ended;
  return text.trim().split("\n");
}

async function countRows(t: Teardown, home: string): Promise<{ count: number; integrity: string }> {
  const db = knex({ client: "sqlite3", connection: { filename: join(home, "a.sqlite") }, useNullAsDefault: true });
  t.teardown(() => db.destroy());
  const hasTable = await db.schema.hasTable("rows");
  const [row] = hasTable ? await db<{ n: number }>("rows").count<{ count: number }[]>({ count: "*" }) : [];
  const [found] = await db.raw<{ integrity_check: string }[]>("PRAGMA integrity_check");
  return { count: row?.count ?? 0, integrity: found!.integrity_check };
}

for (const journal of ["WAL", "DELETE"]) {
  for (const kept of [0, 5, 10]) {
    testIntercepted(`${journal}: synced rows survive a power cut that keeps ${kept} of 10 other writes`, async (t) => {
      const home = join(await temporaryDirectory(t), "home");
      await mkdir(home);
      const lines = await write(t, home, disk, { synchronous: "FULL", rows: 30, journal });
      await disk.losePower(
        home,
        kept === 5 ? { ...keeping(5), below: () => (Math.random() < 0.5 ? 0 : 9) } : keeping(kept),
      );
      const { count, integrity } = await countRows(t, home);
      t.is(integrity, "ok");
      t.true(count >= lines.length, `${count} of ${lines.length}`);
      t.log(`${count} rows, ${lines.length} reported`);
    });
  }
}

testIntercepted("a power cut removes rows that SQLite has not synced", async (t) => {
  const home = join(await temporaryDirectory(t), "home");
  await mkdir(home);
  const lines = await write(t, home, disk, { synchronous: "OFF", rows: 30 });
  t.true(lines.length >= 30);
  t.true((await disk.losePower(home, keeping(0))) > 30);
  t.is((await countRows(t, home)).count, 0);
});

testIntercepted("a process that is killed without a power cut loses nothing", async (t) => {
  const home = join(await temporaryDirectory(t), "home");
  await mkdir(home);
  const lines = await write(t, home, disk, { synchronous: "OFF", rows: 30 });
  t.true((await countRows(t, home)).count >= lines.length);
});

for (const filled of ["full", "full in place"] as const) {
  testIntercepted(`a disk that is ${filled} rejects writes until it has space`, async (t) => {
    const home = join(await temporaryDirectory(t), "home");
    await mkdir(home);
    const lines = await write(t, home, disk, { synchronous: "FULL", rows: 2_000, filled });
    t.is(lines[0], "written");
    t.true(lines.includes("SQLITE_FULL"), lines.slice(-5).join());
    const after = await write(t, home, disk, { synchronous: "FULL", rows: 3 });
    t.true(after.includes("written"));
    t.is((await countRows(t, home)).integrity, "ok");
  });
}

testIntercepted("a socket that gets the descriptor of a closed database file is no file", async (t) => {
  const home = await temporaryDirectory(t);
  const script = `
    const { openSync, closeSync } = await import("node:fs");
    const { connect, createServer } = await import("node:net");
    // Node.js closes files by a system call that the library does not see.
    const descriptors = Array.from({ length: 20 }, (_, i) => openSync(process.argv[1] + i, "w"));
    descriptors.forEach((descriptor) => closeSync(descriptor));
    const server = createServer((socket) => socket.end("hello")).listen(process.argv[2], () => {
      connect(process.argv[2]).on("data", (data) => console.log(String(data))).on("close", () => server.close());
    });`;
  const { stdout } = await run(
    process.execPath,
    ["--input-type=module", "-e", script, join(home, "a.sqlite"), join(home, "socket")],
    { env: cleanEnvironment(await disk.environmentOf(home)) },
  );
  t.is(stdout, "hello\n");
});
