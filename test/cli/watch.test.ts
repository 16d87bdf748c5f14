/** `gatehouse watch` against real nodes. */
import test, { type ExecutionContext } from "ava";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { EventJson } from "../helpers/wire/events.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { cleanEnvironment, cliPath, runCliProcess } from "../helpers/nodes/run-cli.js";
import { fixedPort, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { writeAs } from "../helpers/chain/submit.js";
import { createPublic, type Operation } from "../helpers/chain/transactions.js";
import { until } from "../helpers/nodes/until.js";

const alice = testKey(2);

/** Runs `gatehouse watch` until the test ends. Returns its output so far. */
function watch(t: ExecutionContext, port: number, ...args: readonly string[]) {
  const all = [cliPath, "watch", "--node", `http://127.0.0.1:${port}`, ...args];
  const child = spawn(process.execPath, all, { env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
  t.teardown(() => child.kill());
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  return { lines, stderr: () => stderr };
}

test("prints events as a table or as the JSON of the node, and ends after --count events", async (t) => {
  const node = await startMember(t);
  const hash = await writeAs(alice, node.port, 1, createPublic("a", "{}"));
  const secret: Operation = { case: "createProgram", value: { programName: "b", access: { mode: AccessMode.OWNER } } };
  const hidden = await writeAs(alice, node.port, 2, secret);
  const key = join(node.dir, "alice.key");
  await writeKey(key, alice);
  const run = (...args: readonly string[]) =>
    runCliProcess(["watch", "--node", `http://127.0.0.1:${node.port}`, "--from-block", "1", ...args]);

  const table = await run("--count", "5", "--kind", "transaction", "--kind", "program", "--kind", "block");
  t.is(table.code, 0, table.stderr);
  const short = `${alice.publicKey.slice(0, 10)}…${alice.publicKey.slice(-4)}`;
  t.regex(
    table.stdout,
    new RegExp(
      [
        "^BLOCK +EVENT",
        `1 +transaction +${hash} by ${short}`,
        "1 +program +stor-[0-9a-f]{40} created",
        "1 +block +0x[0-9a-f]{64} 1 transaction",
        `2 +transaction +${hidden} private`,
        "2 +block +0x[0-9a-f]{64} 1 transaction\n$",
      ].join("\n"),
    ),
  );
  const own = await run("--json", "--count", "2", "--kind", "program", "--owner", alice.publicKey, "--key", key);
  const programs = own.stdout.split("\n").filter((line) => line.includes('"program"'));
  t.deepEqual(
    programs.map((line) => (JSON.parse(line) as EventJson).program!.change),
    ["created", "created"],
  );
  const { cursor } = JSON.parse(programs[0]!) as EventJson;
  const rest = await run("--json", "--from", cursor, "--count", "1", "--transaction", hidden, "--key", key);
  const line = rest.stdout.split("\n").find((line) => line.includes('"transaction"'));
  t.like(JSON.parse(line!), { cursor: "2.0", transaction: { hash: hidden, withheld: false } });
});

test("resumes after the last event when the node has restarted, and reports the lost connection", async (t) => {
  const fixed = await fixedPort();
  const node = await startMember(t, fixed);
  const { lines, stderr } = watch(t, node.port, "--json", "--kind", "block", "--from-block", "1");
  const blocks = (): number[] =>
    lines
      .map((line) => JSON.parse(line) as EventJson)
      .flatMap(({ block, blockNumber }) => (block ? [blockNumber] : []));
  await writeAs(alice, node.port, 1, createPublic("a", "{}"));
  await until(() => blocks().length === 1);
  await node.stop();
  await until(() => stderr().includes("Connection lost"));
  const again = await startTestNode(t, { genesis: "genesis.json", ...fixed }, node.dir);
  await writeAs(alice, again.port, 2, createPublic("b", "{}"));
  await until(() => blocks().length >= 2);
  t.deepEqual(blocks(), [1, 2]);
  t.regex(stderr(), /Connection lost: .*; reconnecting\.\nReconnected to the node\.\n/s);
});
