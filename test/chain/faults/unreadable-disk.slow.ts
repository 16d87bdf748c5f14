/**
 * Disk that cannot be read for a while (EIO), which SQLite reports as corruption. Requires Linux and a C compiler, for the
 * library that makes reads fail.
 */
import test from "ava";
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { interceptDisks } from "../../../tools/campaign/disk/disk.js";
import { testKey } from "../../helpers/chain/keys.js";
import { chainClient, include, newProgram } from "../../helpers/chain/submit.js";
import {
  cleanEnvironment,
  cliPath,
  collect,
  type RunningCli,
  runCliProcess,
  startCli,
} from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";
import type { HealthBody } from "../../helpers/process/health-shape.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";

const [authority, alice] = [testKey(1), testKey(2)];
const directory = mkdtempSync(join(tmpdir(), "gatehouse-disk-"));
const disk = interceptDisks(directory, true);
test.after.always(() => rm(directory, { recursive: true, force: true }));
const testIntercepted = testUnless(disk.unavailableReason);

/** Number of blocks, each with a document of 300 kB: more than the caches of the connections hold. */
const blocks = 24;
/** Duration of the fault: several attempts of the node to read the disk again. */
const unreadableForMs = 5_000;

const health = (node: RunningCli) => askJson<HealthBody>(node.port, "/health");

function start(t: Teardown, dir: string, env: Readonly<Record<string, string>>, ...flags: string[]) {
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0", "--log-level", "warn"];
  return startCli(t, ["start", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), ...ports, ...flags], env);
}

/** Returns the messages in the log, without stacks, which have the names of files. */
const logged = (node: Pick<RunningCli, "stderr">): string[] =>
  node
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as { readonly msg: string; readonly err?: { readonly message: string } })
    .map(({ msg, err }) => `${msg} ${err?.message ?? ""}`);

/** Creates a node with blocks, and stops it. */
async function createBlocks(t: Teardown) {
  const dir = await authorityDirectory(t, authority);
  const env = await disk.environmentOf(dir);
  const node = await start(t, dir, env, "--recover");
  const client = chainClient(node);
  for (let nonce = 1; nonce <= blocks; nonce++) {
    await include(client, newProgram(alice, nonce, JSON.stringify({ text: "x".repeat(300_000) })));
  }
  await stop(node);
  return { dir, env };
}

async function stop(node: RunningCli): Promise<void> {
  node.child.kill("SIGTERM");
  await node.ended;
}

for (const workers of ["1", "2"]) {
  testIntercepted(
    `with --workers ${workers}, a disk that cannot be read for a while is not reported as corruption`,
    async (t) => {
      const { dir, env } = await createBlocks(t);
      const node = await start(t, dir, env, "--recover", "--workers", workers);
      const client = chainClient(node);
      await disk.setReadable(dir, "unreadable");
      const submitted = client.submitTransaction({ transaction: newProgram(alice, blocks + 1) }).catch(() => undefined);
      const endMs = performance.now() + unreadableForMs;
      const errors = new Map<string, number>();
      const messages = new Set<string>();
      let wasFailing = false;
      while (performance.now() < endMs) {
        for (let number = 1; number <= blocks; number++) {
          const { status, text } = await ask(node.port, `/chain/blocks/${number}`);
          const name = status === 200 ? "200" : `${status} ${(JSON.parse(text) as { errorCode: string }).errorCode}`;
          errors.set(name, (errors.get(name) ?? 0) + 1);
        }
        await ask(node.port, "/chain/blocks");
        const { status, subsystems } = await health(node);
        wasFailing ||= status === "failing";
        messages.add(subsystems["chain"]!.lastError?.message ?? "");
        await sleep(50);
      }
      await submitted;
      t.true(wasFailing);
      t.true(errors.has("503 DATABASE_UNAVAILABLE"), [...errors.keys()].join());
      t.false(errors.has("500 DATABASE_DAMAGED"));
      t.true(messages.has("The disk of the database cannot be read (EIO)."), [...messages].join());
      await disk.setReadable(dir, "readable");
      const recoverMs = performance.now();
      await until(async () => (await health(node)).status !== "failing");
      t.log(`recovered after ${Math.round(performance.now() - recoverMs)} ms`, Object.fromEntries(errors));
      for (let number = 1; number <= blocks; number++) {
        t.is((await ask(node.port, `/chain/blocks/${number}`)).status, 200);
      }
      await include(client, newProgram(alice, blocks + 2));
      t.notRegex([...messages, ...logged(node)].join("\n"), /corrupt|malformed/);
    },
  );
}

testIntercepted("a start waits for a disk that cannot be read", async (t) => {
  const { dir, env } = await createBlocks(t);
  await disk.setReadable(dir, "unreadable");
  const args = ["start", "--recover", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), "--json"];
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  const child = spawn(process.execPath, [cliPath, ...args, ...ports], { env: cleanEnvironment(env) });
  t.teardown(() => child.kill("SIGKILL"));
  const output = collect(child);
  await until(() => output.stderr().includes("The start waits for it"));
  await disk.setReadable(dir, "readable");
  await until(() => output.stdout().includes("\n"));
  const messages = logged(output).join("\n");
  t.regex(messages, /The disk of .* cannot be read \(EIO\).* The start waits for it/);
  t.notRegex(messages, /backup|corrupt/);
});

testIntercepted("a read that fails once is repeated", async (t) => {
  const { dir, env } = await createBlocks(t);
  const node = await start(t, dir, env, "--recover");
  for (let number = 1; number <= blocks; number++) {
    await disk.setReadable(dir, "unreadable once");
    const { status, text } = await ask(node.port, `/chain/blocks/${number}`);
    t.true(status === 200 || text.includes("DATABASE_UNAVAILABLE"), text);
  }
  await disk.setReadable(dir, "readable");
  await until(async () => (await health(node)).status !== "failing");
  t.notRegex(logged(node).join("\n"), /corrupt|malformed/);
});

testIntercepted("commands name the disk that cannot be read, and do not report corruption", async (t) => {
  const { dir, env } = await createBlocks(t);
  await disk.setReadable(dir, "unreadable");
  const commands = [
    ["verify-data", "--data-dir", dir],
    ["backup", join(dir, "backup"), "--data-dir", dir],
    ["doctor", "--data-dir", dir],
  ];
  for (const args of commands) {
    const { code, stdout, stderr } = await runCliProcess(args, { env });
    t.not(code, 0, args[0]);
    t.regex(stdout + stderr, /The disk of .* cannot be read \(EIO\)/, args[0]);
    t.notRegex(stdout + stderr, /corrupt|[Rr]estore/, args[0]);
  }
});
