/** A node with two worker processes: kills, hangs, shutdown, and limits that apply to both workers together. */
import test from "ava";
import cluster from "node:cluster";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { defaultOverload } from "../../src/edge/concurrency.js";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { openSqlite, prepareEngines } from "../helpers/databases/databases.js";
import { metricsFlags, parseMetrics, readEdgeCounts } from "../helpers/process/prometheus.js";
import { type Listener, listen } from "../helpers/wire/events.js";
import { ask, askFrom, askJson, openFrom } from "../helpers/wire/plain-client.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { testKey } from "../helpers/chain/keys.js";
import { runCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { storeProgram, writeAs } from "../helpers/chain/submit.js";
import { type Operation, signZk, spend } from "../helpers/chain/transactions.js";
import { eventually, until } from "../helpers/nodes/until.js";

const engines = await prepareEngines();

const twoWorkers = { workers: "2" };

const setN = (storageAddress: string, n: number): Operation => ({
  case: "setField",
  value: { storageAddress, field: "n", value: String(n) },
});

/** Process ids of the workers of all nodes in this process. */
function workerPids(): number[] {
  return Object.values(cluster.workers ?? {}).flatMap((worker) => worker?.process.pid ?? []);
}

const toHex = (n: number): string => n.toString(16).padStart(64, "0");

interface Health {
  readonly status: string;
  readonly subsystems: {
    readonly rpc: {
      readonly status: string;
      readonly lastError: { readonly message: string } | null;
      readonly extra?: { readonly workers: { running: number; configured: number; restarts: number } };
    };
    readonly chain: { readonly status: string; readonly lastError: { readonly message: string } | null };
  };
}

async function workersOf(port: number) {
  return (await askJson<Health>(port, "/health")).subsystems.rpc.extra?.workers;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.serial("a killed worker loses only its requests in flight, is replaced, and counts as a restart", async (t) => {
  const node = await startTestNode(t, twoWorkers);
  const outcomes: string[] = [];
  let isFinished = false;
  /** Sends one request after the other over a keep-alive connection. */
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isFinished) {
      outcomes.push(await outcomeOf(node.port, agent));
    }
    agent.destroy();
  };
  const clients = Array.from({ length: 8 }, client);
  const kills = 4;
  /** Waits until the node has replaced each worker that was killed. Before, it may still count that worker. */
  const bothRun = (replaced: number): Promise<void> =>
    until(async () => {
      const workers = await workersOf(node.port).catch(() => undefined);
      return workers?.running === 2 && workers.restarts === replaced;
    }, `both run, after ${replaced} restarts`);
  for (let i = 0; i < kills; i++) {
    await bothRun(i);
    await pause(100);
    const before = outcomes.length;
    process.kill(workerPids()[i % 2]!, "SIGKILL");
    await until(() => outcomes.length > before + 200, "the other worker responds");
  }
  isFinished = true;
  await Promise.all(clients);
  const lost = outcomes.filter((outcome) => outcome !== "200");
  const codes = [...new Set(lost)].map((code) => `${lost.filter((outcome) => outcome === code).length} ${code}`);
  t.true(lost.length <= kills * clients.length, `of ${outcomes.length} lost: ${codes.join()}`);
  t.deepEqual(
    [...new Set(lost)].filter((code) => !["ECONNRESET", "EPIPE"].includes(code)),
    [],
  );
  await bothRun(kills);
  const { rpc } = (await askJson<Health>(node.port, "/health")).subsystems;
  t.is(rpc.status, "ready");
  t.is(rpc.lastError, null, "the restarts remain in extra.workers");
});

/** Requests /version. Returns the status of the response, or the code of the error. */
function outcomeOf(port: number, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const request = httpRequest({ host: "127.0.0.1", port, path: "/version", agent }, (response) => {
      response.resume().once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      response.once("end", () => resolve(String(response.statusCode)));
    });
    request.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
  });
}

test.serial("a worker that hangs is killed and replaced while the other one serves", async (t) => {
  t.timeout(120_000);
  const node = await startTestNode(t, twoWorkers);
  const [frozen] = workerPids();
  process.kill(frozen!, "SIGSTOP");
  await until(() => !isAlive(frozen!), "the worker is killed");
  await eventually("the worker is replaced", async () => {
    const workers = await workersOf(node.port);
    return workers?.running === 2 && workers.restarts === 1;
  });
  t.true(workerPids().every(isAlive));
});

test.serial("the rate limit of an address applies to all workers together", async (t) => {
  const node = await startTestNode(t, { ...twoWorkers, "rate-limit": "60", "rate-limit-exempt": "" });
  const statuses = async (count: number): Promise<number[]> =>
    (await Promise.all(Array.from({ length: count }, () => askFrom(node.port, "/info", "127.0.0.5")))).map(
      ({ status }) => status,
    );
  // Of 100 requests in total, each worker alone has fewer than 60.
  t.deepEqual(new Set(await statuses(40)), new Set([200]));
  await pause(400);
  await statuses(40);
  await pause(400);
  const rejected = (await statuses(20)).filter((status) => status === 429);
  t.true(rejected.length >= 17, `${rejected.length} of 20 were rejected`);
  t.is((await askFrom(node.port, "/info", "127.0.0.6")).status, 200, "another address is not limited");
  const { totalIPs, blockedIPs } = JSON.parse((await askFrom(node.port, "/rate-limit/stats", "127.0.0.6")).text) as {
    totalIPs: number;
    blockedIPs: number;
  };
  t.deepEqual({ totalIPs, blockedIPs }, { totalIPs: 2, blockedIPs: 1 });
});

test.serial("the stream limit of an address applies to all workers together", async (t) => {
  const node = await startTestNode(t, { ...twoWorkers, ...metricsFlags, "streams-per-address": "4" });
  const counts = await readEdgeCounts(node);
  const open = (): void =>
    void openFrom(t, node.port, "127.0.0.7").write("GET /health/watch HTTP/1.1\r\nHost: a\r\n\r\n");
  for (let i = 1; i <= 4; i++) {
    open();
    await until(async () => (await counts()).openStreams === i, `${i} streams`);
  }
  await pause(400);
  const fifth = await askFrom(node.port, "/health/watch", "127.0.0.7");
  t.is(fifth.status, 429);
  t.is((JSON.parse(fifth.text) as { errorCode: string }).errorCode, "TOO_MANY_STREAMS");
  t.is((await askFrom(node.port, "/version", "127.0.0.7")).status, 200);
});

test.serial("the connection limit of an address applies to all workers together", async (t) => {
  const node = await startTestNode(t, { ...twoWorkers, ...metricsFlags, "connections-per-address": "4" });
  const counts = await readEdgeCounts(node);
  for (let i = 1; i <= 4; i++) {
    openFrom(t, node.port, "127.0.0.7").write("GET /health/watch HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(async () => (await counts()).openStreams === i, `${i} streams`);
  }
  await pause(400);
  await t.throwsAsync(askFrom(node.port, "/version", "127.0.0.7"), undefined, "the fifth is closed");
  t.is((await askFrom(node.port, "/version", "127.0.0.8")).status, 200);
});

test.serial("metrics count and time the requests of all workers", async (t) => {
  const node = await startTestNode(t, { ...twoWorkers, ...metricsFlags });
  const { ports } = await askJson<{ ports: { metrics: { actual: number } } }>(node.port, "/health");
  await Promise.all(Array.from({ length: 30 }, () => ask(node.port, "/version")));
  const rpc = "gatehouse.info.v1.InfoService/GetVersion";
  await until(async () => {
    const metrics = parseMetrics((await ask(ports.metrics.actual, "/metrics")).text);
    const memoryBytes = ["1", "2"].map(
      (worker) => metrics.value("gatehouse_worker_resident_memory_bytes", { worker }) ?? 0,
    );
    return (
      metrics.value("gatehouse_requests_total", { protocol: "http", rpc, code: "OK" }) === 30 &&
      metrics.value("gatehouse_request_duration_seconds_count", { protocol: "http", rpc }) === 30 &&
      metrics.value("gatehouse_workers", { state: "running" }) === 2 &&
      memoryBytes.every((bytes) => bytes > 1_000_000)
    );
  });
  t.pass();
});

for (const engine of engines.names) {
  test.serial(`${engine}: a client that sends Gatehouse-Min-Block reads no older state from any worker`, async (t) => {
    t.timeout(120_000);
    const node = await startMember(t, { ...twoWorkers, database: await engines.createUrl(t, engine) });
    const { address } = await storeProgram(t, node, "counter", `{"n":0}`);
    for (let n = 1; n <= 15; n++) {
      const hash = await writeAs(testKey(90), node.port, n + 1, setN(address, n));
      const { blockNumber } = await askJson<{ blockNumber: number }>(node.port, `/chain/transactions/${hash}`);
      const headers = { "Gatehouse-Min-Block": String(blockNumber) };
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => ask(node.port, `/storage-program/${address}/field/n`, { headers })),
      );
      for (const { status, headers: received, text } of answers) {
        t.is(status, 200);
        t.true(Number(received["gatehouse-block"]) >= blockNumber);
        t.is((JSON.parse(text) as { value: number }).value, n);
      }
    }
  });
}

for (const flags of [{}, twoWorkers]) {
  test.serial(`a request waits for the block that Gatehouse-Min-Block names, ${JSON.stringify(flags)}`, async (t) => {
    const node = await startMember(t, flags);
    const at = (block: string) => ask(node.port, "/zk/merkle-root", { headers: { "Gatehouse-Min-Block": block } });
    const late = await at("1000");
    t.is(late.status, 503);
    t.is(late.headers["retry-after"], "1");
    t.like(JSON.parse(late.text), {
      errorCode: "STATE_NOT_READY",
      error: "This node is at block 0; try again in 1 s.",
    });
    t.is((await at("0")).status, 200);
    for (const wrong of ["", "-1", "1e3", "0x1", "9007199254740992", "99999999999999999999"]) {
      const { status, text } = await at(wrong);
      t.is(status, 400, wrong);
      t.like(JSON.parse(text), {
        errorCode: "INVALID_REQUEST",
        error: "Gatehouse-Min-Block must be the number of a block.",
      });
    }
    const waiting = Promise.all([at("1"), at("1"), at("1")]);
    await storeProgram(t, node, "one", "{}");
    for (const { status, headers } of await waiting) {
      t.is(status, 200);
      t.is(headers["gatehouse-block"], "1");
    }
  });
}

test.serial("an HTTP/2 request that ends after its headers may wait for a block", async (t) => {
  const node = await startMember(t);
  const session = connectHttp2(`http://127.0.0.1:${node.port}`);
  t.teardown(() => session.close());
  const stream = session.request({
    ...{ ":method": "POST", ":path": "/gatehouse.zk.v1.ZkService/GetMerkleRoot" },
    ...{ "content-type": "application/proto", "gatehouse-min-block": "1" },
  });
  // The end of the stream arrives in a frame of its own, after the headers.
  stream.end();
  const responded = Promise.all([once(stream, "response"), text(stream)]);
  await storeProgram(t, node, "one", "{}");
  const [[response]] = (await responded) as [unknown[], string];
  t.like(response, { ":status": 200, "gatehouse-block": "1" });
});

test.serial("subscribers of every worker receive all events, rejections included", async (t) => {
  const node = await startMember(t, twoWorkers);
  const listeners: Listener[] = [];
  for (let i = 0; i < 4; i++) {
    listeners.push(await listen(node.port));
  }
  t.teardown(() => listeners.forEach((listener) => listener.end()));
  await storeProgram(t, node, "one", "{}");
  for (const listener of listeners) {
    const events = await listener.takeTo(1);
    t.deepEqual(
      events.flatMap(({ program }) => program?.change ?? []),
      ["created"],
    );
  }
  // Two transactions spend one nullifier. If the first is in a block already, the second is rejected on submission.
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const hasRejection = ({ heard }: Listener): boolean =>
    heard.some(({ transaction }) => transaction?.outcome === "rejected");
  for (let i = 1; !listeners.some(hasRejection); i++) {
    const pair = [2 * i, 2 * i + 1].map((nonce) => signZk(testKey(1), nonce, spend(`0x${toHex(i)}`)));
    const [, second] = await Promise.allSettled(
      pair.map((transaction) => client.call(ChainService.method.submitTransaction, { transaction })),
    );
    if (second!.status === "fulfilled") {
      await until(() => listeners.every(hasRejection), "all listeners receive the rejection");
    }
  }
  t.true(listeners.every(hasRejection));
});

test.serial("a corrupt row that a worker reads fails the chain subsystem of the node", async (t) => {
  const node = await startMember(t, twoWorkers);
  const { address } = await storeProgram(t, node, "one", `{"a":"untouched"}`);
  const owner = `0x${"1".repeat(64)}`;
  await openSqlite(t, node.databaseFile)("programs").where({ address }).update({ owner });
  const { status } = await ask(node.port, `/storage-program/${address}`);
  t.is(status, 500);
  await until(async () => {
    const { chain } = (await askJson<Health>(node.port, "/health")).subsystems;
    return chain.status === "failed" && chain.lastError!.message.includes(address);
  });
});

test.serial("stopping the node ends the streams of all workers, and the workers", async (t) => {
  const node = await startMember(t, twoWorkers);
  const running = workerPids();
  t.is(running.length, 2);
  const listeners = [await listen(node.port), await listen(node.port)];
  await node.stop();
  await until(() => listeners.every(({ isOver }) => isOver));
  t.deepEqual(running.filter(isAlive), []);
  t.deepEqual(workerPids(), []);
  await t.throwsAsync(ask(node.port, "/version"));
});

test.serial("workers ignore SIGINT and wait for their node, and do not outlive a node that is killed", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    const node = await startNodeProcess(t, dir, ["--workers", "2", "--metrics-enabled", "--metrics-port", "0"]);
    const children = await childrenOf(node.child.pid!);
    t.is(children.length, 2);
    if (signal === "SIGINT") {
      // Ctrl-C in a terminal signals the whole process group.
      children.forEach((pid) => process.kill(pid, signal));
    }
    await pause(200);
    t.is((await ask(node.port, "/version")).status, 200, "workers wait until their node stops them");
    node.child.kill(signal);
    t.is(await node.ended, signal === "SIGINT" ? 0 : null);
    await until(() => !children.some(isAlive), "no worker is left");
  }
});

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").flatMap((pid) => (pid.trim() === "" ? [] : Number(pid)));
}

test.serial("reports a taken port, and rejects an invalid number of workers", async (t) => {
  const port = await freePort();
  const first = await startTestNode(t, { "rpc-port": String(port) });
  const error = await t.throwsAsync(
    startTestNode(t, { ...twoWorkers, "rpc-port": String(port), "port-drift": "deny" }),
  );
  t.is(error.message, `Port ${port} is taken; choose another --rpc-port, or --port-drift allow.`);
  const second = await startTestNode(t, { ...twoWorkers, "rpc-port": String(port) });
  t.is(second.port, port + 1);
  t.is((await ask(first.port, "/version")).status, 200);
  for (const wrong of ["0", "many", "1.5", "65"]) {
    const { code, stderr } = await runCli(["start", "--workers", wrong]);
    t.is(code, 2, wrong);
    t.regex(stderr, /--workers must be auto or a whole number from 1 to 64/);
  }
});

test.serial("--workers 1 serves from the node's own process", async (t) => {
  const node = await startTestNode(t, { workers: "1" }, undefined, { overload: defaultOverload });
  t.deepEqual(workerPids(), []);
  t.is(await workersOf(node.port), undefined);
});
