/** Every status of /health, in running nodes. */
import { createClient } from "@connectrpc/connect";
import test, { type ExecutionContext } from "ava";
import { execFileSync } from "node:child_process";
import { closeSync, open, openSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { ControlService } from "../../gen/gatehouse/control/v1/control_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { mempoolSuffix } from "../../src/db/open.js";
import { type HealthBody, healthShape, subsystemsShape } from "../helpers/process/health-shape.js";
import { testKey } from "../helpers/chain/keys.js";
import { sampleGenesis, silentPeer, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { ask } from "../helpers/wire/plain-client.js";
import { writeAs } from "../helpers/chain/submit.js";
import { createPublic } from "../helpers/chain/transactions.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { openSqlite } from "../helpers/databases/databases.js";

async function health(port: number): Promise<{ status: number; dormantHeader: string | undefined; body: HealthBody }> {
  // Times change while an error repeats.
  const toldBy = ({ dormant, subsystems }: Pick<HealthBody, "dormant" | "subsystems">): string =>
    JSON.stringify([dormant, subsystems], (key, value: unknown) => (key === "at" ? undefined : value));
  let found: Awaited<ReturnType<typeof health>> | undefined;
  await until(async () => {
    const [whole, slim, again] = [
      await ask(port, "/health"),
      await ask(port, "/health/subsystems"),
      await ask(port, "/health"),
    ];
    const [body, after] = [whole, again].map(({ text }) => healthShape.parse(JSON.parse(text))) as [
      HealthBody,
      HealthBody,
    ];
    if (toldBy(body) !== toldBy(after)) {
      // The state changed between the responses.
      return false;
    }
    if (slim.status !== 200 || toldBy(subsystemsShape.parse(JSON.parse(slim.text))) !== toldBy(body)) {
      throw new Error("the two health answers disagree");
    }
    found = { status: whole.status, dormantHeader: whole.headers["x-node-dormant"] as string | undefined, body };
    return true;
  });
  return found!;
}

/** Polls until the status is the expected one. */
async function healthOnce(port: number, wanted: HealthBody["status"]) {
  let answer = await health(port);
  await until(async () => {
    answer = await health(port);
    return answer.body.status === wanted;
  });
  return answer;
}

test("ok: everything works", async (t) => {
  const { port } = await startMember(t);
  const { status, dormantHeader, body } = await health(port);
  t.is(status, 200);
  t.is(dormantHeader, undefined);
  t.like(body, { status: "ok", dormant: false, accepting: true, mempool_size: 0 });
  t.like(body.boot, { complete: true, steps_failed: 0, current: null });
  t.is(body.boot.steps_total, body.boot.steps_ready + body.boot.steps_skipped);
  t.like(body.main_loop, { exited: false, exit_reason: null });
  t.deepEqual(body.ports.rpc, { requested: 0, actual: port, drifted: true });
  t.is((await ask(port, "/readyz")).status, 200);
});

test("degraded: another subsystem failed", async (t) => {
  const { port, subsystems } = await startMember(t);
  subsystems.set("metrics", { status: SubsystemStatus.FAILED, error: { message: "no disk", source: "test" } });
  const { status, dormantHeader, body } = await health(port);
  t.is(status, 200);
  t.is(dormantHeader, undefined);
  t.is(body.status, "degraded");
  t.like(body.subsystems.metrics, { status: "failed", lastError: { message: "no disk", source: "test" } });
  subsystems.set("metrics", { status: SubsystemStatus.READY });
  const recovered = (await health(port)).body;
  t.is(recovered.status, "ok");
  t.is(recovered.subsystems.metrics?.lastError, null);
});

test("dormant: booted without peers", async (t) => {
  const { port } = await startTestNode(t, { genesis: sampleGenesis });
  const { status, dormantHeader, body } = await health(port);
  t.is(status, 200);
  t.is(dormantHeader, "true");
  t.like(body, { status: "dormant", dormant: true, accepting: false });
  t.true(body.boot.complete);
  for (const name of ["signaling", "mcp", "tlsnotary", "main_loop"] as const) {
    t.is(body.subsystems[name]?.status, "skipped");
    t.truthy(body.subsystems[name]?.extra?.reason);
  }
  t.deepEqual(body.main_loop, { heartbeat_age_s: null, iterations_total: 0, exited: false, exit_reason: null });
  t.is((await ask(port, "/livez")).status, 200);
  t.is((await ask(port, "/readyz")).status, 503);
});

test("failing: pending transactions cannot be counted, then recovers", async (t) => {
  const { port, databaseFile } = await startMember(t);
  const database = openSqlite(t, `${databaseFile}${mempoolSuffix}`);
  await database.schema.renameTable("pending_transactions", "gone");
  const { status, dormantHeader, body } = await healthOnce(port, "failing");
  t.is(status, 503);
  t.is(dormantHeader, undefined);
  t.like(body, { status: "failing", mempool_size: null, accepting: false });
  t.is((await ask(port, "/livez")).status, 200);
  t.is((await ask(port, "/readyz")).status, 503);
  await database.schema.renameTable("gone", "pending_transactions");
  t.like(await healthOnce(port, "ok"), { status: 200, body: { status: "ok", mempool_size: 0, accepting: true } });
});

test("failing: the database is corrupt, and accepts no transactions", async (t) => {
  const { port, databaseFile } = await startMember(t);
  await writeAs(testKey(1), port, 1, createPublic("a", "{}"));
  await openSqlite(
    t,
    databaseFile,
  )("blocks")
    .where({ number: 1 })
    .update({ signature: Buffer.alloc(64) });
  t.not((await ask(port, "/chain/blocks/1")).status, 200);
  const { body } = await healthOnce(port, "failing");
  t.is(body.subsystems.chain?.status, "failed");
  t.false(body.accepting);
});

test("failing: another process reports that the chain failed, and no transactions are accepted", async (t) => {
  const { port, control } = await startMember(t);
  const report = async (status: SubsystemStatus, error?: string): Promise<unknown> =>
    await createClient(ControlService, control).reportSubsystem({
      ...{ name: "chain", status, leaseS: 60, ...(error !== undefined && { error }) },
    });
  await report(SubsystemStatus.FAILED, "no quorum");
  t.like((await health(port)).body, { status: "failing", accepting: false });
  await report(SubsystemStatus.READY);
  t.like((await health(port)).body, { status: "ok", accepting: true, subsystems: { chain: { lastError: null } } });
});

test("failing: the chain does not match its hash, even on a dormant node", async (t) => {
  const dir = await temporaryDirectory(t);
  const first = await startTestNode(t, { genesis: sampleGenesis }, dir);
  await first.stop();
  await openSqlite(
    t,
    first.databaseFile,
  )("blocks")
    .where({ number: 0 })
    .update({ hash: `0x${"0".repeat(64)}` });
  const { port } = await startTestNode(t, {}, dir);
  const { status, dormantHeader, body } = await health(port);
  t.is(status, 503);
  t.is(dormantHeader, undefined);
  t.like(body, { status: "failing", dormant: true });
  t.is(body.boot.steps_failed, 1);
  t.is(body.subsystems.chain?.status, "failed");
  t.regex(body.subsystems.chain?.lastError?.message ?? "", /Block 0/);
});

test("failing: the main loop died", async (t) => {
  const { port, mainLoop } = await startMember(t);
  await mainLoop.stop("the test ended it");
  const { status, dormantHeader, body } = await health(port);
  t.is(status, 503);
  t.is(dormantHeader, undefined);
  t.like(body, { status: "failing", accepting: false });
  t.like(body.main_loop, { exited: true, exit_reason: "the test ended it" });
  t.like(body.subsystems.main_loop, { status: "failed", lastError: { message: "the test ended it" } });
  t.is((await ask(port, "/livez")).status, 503);
});

test("stopping: reports the main loop equally in subsystem and heartbeat", async (t) => {
  const node = await startMember(t);
  const stopped = node.stop();
  let isOver = false;
  void stopped.finally(() => (isOver = true));
  await until(async () => {
    const answer = await ask(node.port, "/health").catch(() => undefined);
    if (answer !== undefined && answer.text !== "") {
      const { main_loop, subsystems } = healthShape.parse(JSON.parse(answer.text));
      t.is(subsystems.main_loop?.status, main_loop.exited ? "skipped" : "ready");
    }
    return isOver;
  });
  t.true(node.mainLoop.heartbeat().exited);
  t.like(node.subsystems.get("main_loop"), {
    status: SubsystemStatus.SKIPPED,
    extra: { reason: "The node is shutting down." },
  });
});

test("stopping: alive, but not ready, as long as it finishes requests", async (t) => {
  const { port, mainLoop, stop } = await startMember(t);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "health.getLiveness" });
  const socket = connect(port, "127.0.0.1");
  t.teardown(() => socket.destroy());
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => (received += text));
  await once(socket, "connect");
  // A request in progress keeps its connection open.
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`);
  await ask(port, "/livez");
  const stopped = stop();
  await until(() => mainLoop.heartbeat().exited);
  socket.write(
    `${body.slice(9)}${["/livez", "/readyz", "/health"].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join("")}`,
  );
  await stopped;
  t.deepEqual(received.match(/(?<=HTTP\/1\.1 )\d+/g), ["200", "200", "503", "200"]);
  t.regex(received, /"stopping","status":"failing"/);
});

test("waking: a complete boot stays complete", async (t) => {
  const node = await startTestNode(t, {
    ...{ genesis: sampleGenesis, "tlsnotary-enabled": true, "mcp-enabled": true, "mcp-port": "0" },
    "allow-private-peers": true,
  });
  t.true((await health(node.port)).body.boot.complete);
  const bootStates: HealthBody["boot"][] = [];
  const added = createClient(ControlService, node.control).addPeer({ endpoint: silentPeer });
  await until(async () => {
    const { boot, subsystems } = healthShape.parse(JSON.parse((await ask(node.port, "/health")).text));
    bootStates.push(boot);
    return subsystems.main_loop?.status === "ready";
  });
  await added;
  t.true(bootStates.some(({ current }) => current !== null));
  t.true(bootStates.every(({ complete }) => complete));
});

// Serial, because the test blocks every database thread of this process.
/**
 * Blocks the threads that run SQLite: opening a FIFO for reading waits for a writer. Returns a function that frees the
 * threads. The test also frees them at its end, because stopping the node needs a thread.
 */
function holdThreadPool(t: ExecutionContext, dir: string): () => Promise<void> {
  const fifo = join(dir, "hang");
  execFileSync("mkfifo", [fifo]);
  let heldThreads = 4;
  for (let i = 0; i < 4; i++) {
    open(fifo, "r", (_, fd) => {
      closeSync(fd);
      heldThreads--;
    });
  }
  const release = async () => {
    if (heldThreads > 0) {
      const writer = openSync(fifo, "w");
      await until(() => heldThreads === 0);
      closeSync(writer);
    }
  };
  t.teardown(release);
  return release;
}

test.serial("reports failing while the database hangs, without delay, and recovers", async (t) => {
  const { port, dir } = await startMember(t);
  t.is((await health(port)).body.status, "ok");
  const release = holdThreadPool(t, dir);
  // The chain may detect the hang before the count of pending transactions does.
  await until(async () => (await health(port)).body.mempool_size === null);
  const { status, body } = await health(port);
  t.is(status, 503);
  t.like(body, { status: "failing", mempool_size: null });
  const [live, again] = await Promise.all([ask(port, "/livez"), ask(port, "/health")]);
  t.is(live.status, 200);
  t.is(again.status, 503);
  await release();
  t.like(await healthOnce(port, "ok"), { status: 200, body: { mempool_size: 0 } });
});

test("responds to a thousand concurrent probes", async (t) => {
  const { port } = await startMember(t);
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask(port, "/health")));
  t.true(answers.every(({ status }) => status === 200));
});
