/** A node that starts while its database is unreachable: responses of its public port, and the end of the wait. */
import test from "ava";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { HealthService, HealthStatus } from "../../../gen/gatehouse/health/v1/health_pb.js";
import { StartAborted, StartError } from "../../../src/base/errors/start-error.js";
import { createCaller } from "../../helpers/process/caller.js";
import { createForwarder, type Forwarder } from "../../helpers/wire/forwarder.js";
import { freePort } from "../../helpers/nodes/free-port.js";
import { type HealthBody, healthShape } from "../../helpers/process/health-shape.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { sharedPostgres } from "../../helpers/databases/postgres-server.js";
import { connectRpc, readFailure, rpcProtocols } from "../../helpers/wire/rpc-clients.js";
import { sampleGenesis, startTestNode, type TestNode } from "../../helpers/nodes/start-node.js";
import { type Teardown } from "../../helpers/nodes/teardown.js";
import { eventually } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

const postgres = await sharedPostgres();
const testPostgres = testUnless(typeof postgres === "string" ? postgres : undefined);

interface Starting {
  readonly port: number;
  readonly database: Forwarder;
  readonly node: Promise<TestNode>;
}

/** Starts a node whose database cannot be reached yet, and resolves once its port is open. */
async function startWithoutDatabase(
  t: Teardown,
  flags: Readonly<Record<string, string | boolean>> = {},
  signal?: AbortSignal,
): Promise<Starting> {
  const databases = postgres as Exclude<typeof postgres, string>;
  const url = await databases.createDatabase();
  t.teardown(() => databases.dropDatabase(url));
  const database = await createForwarder(t, url);
  const port = await freePort();
  const ownFlags = { database: database.url, "rpc-port": String(port), "port-drift": "deny", genesis: sampleGenesis };
  const node = startTestNode(t, { ...ownFlags, ...flags }, undefined, signal === undefined ? {} : { signal });
  node.catch(() => undefined);
  await eventually("the port is open", async () => (await ask(port, "/livez")).status === 200);
  return { port, database, node };
}

testPostgres(
  "reports a failing health while it boots, and serves everything once the database is reachable",
  async (t) => {
    const { port, database, node } = await startWithoutDatabase(t);
    const health = await ask(port, "/health");
    t.is(health.status, 503);
    t.is(health.headers["x-node-dormant"], undefined);
    const body = JSON.parse(health.text) as HealthBody;
    t.notThrows(() => healthShape.parse(body));
    t.like(body, {
      status: "failing",
      accepting: false,
      mempool_size: null,
      dormant: false,
      boot: { complete: false, steps_ready: 0, steps_failed: 0, steps_skipped: 5, current: "database" },
      ports: { rpc: { requested: port, actual: port, drifted: false } },
      main_loop: { heartbeat_age_s: null, iterations_total: 0, exited: false, exit_reason: null },
    });
    t.like(body.subsystems, {
      chain: { status: "pending", enabled: true },
      rpc: { status: "pending", port, enabled: true },
      metrics: { status: "skipped", enabled: false, extra: { reason: "--metrics-enabled is not set." } },
      signaling: { status: "skipped", enabled: false },
      mcp: { status: "skipped", enabled: false },
      tlsnotary: { status: "skipped", enabled: false },
      l2ps: { status: "skipped", enabled: false },
      main_loop: { status: "pending", enabled: true },
    });
    t.regex(body.subsystems.chain!.lastError!.message, /^The database is unavailable \(.+\); the start waits/);

    const slim = await ask(port, "/health/subsystems");
    t.is(slim.status, 200);
    t.deepEqual(Object.keys(JSON.parse(slim.text) as object), ["dormant", "subsystems"]);
    const ready = await ask(port, "/readyz?verbose");
    t.is(ready.status, 503);
    t.regex(ready.text, /"boot","status":"failing","message":"The node is booting\."/);
    t.is((await ask(port, "/version")).status, 200);
    t.like(await askJson(port, "/"), { yourIP: "127.0.0.1" });
    t.is((await ask(port, "/diagnostics")).status, 200);
    t.is((await ask(port, "/nothing")).status, 404);
    // Probes may send the headers of signed requests.
    t.is((await ask(port, "/livez", { headers: { signature: "abc" } })).status, 200);

    await database.open();
    const started = await node;
    t.is(started.port, port);
    t.is((await ask(port, "/info")).status, 200);
    t.is((await ask(port, "/genesis")).status, 200);
    const after = {
      boot: { complete: true, current: null },
      mempool_size: 0,
      subsystems: { chain: { lastError: null } },
    };
    t.like(await askJson(port, "/health"), after);
  },
);

testPostgres("every other route fails with STATE_NOT_READY while the node boots, in every protocol", async (t) => {
  const { port, database, node } = await startWithoutDatabase(t);
  const program = `/storage-program/stor-${"0".repeat(40)}`;
  for (const path of ["/info", "/publickey", "/peerlist", "/genesis", "/zk/merkle-root", "/chain/head", program]) {
    const { status, headers, text } = await ask(port, path);
    t.is(status, 503, path);
    t.is(headers["retry-after"], "1", path);
    t.like(JSON.parse(text), { success: false, errorCode: "STATE_NOT_READY" }, path);
  }
  // A signed request names its network, which this node does not know yet.
  const headers = createCaller().headers({ network: `0x${"5".repeat(64)}` });
  t.is((await ask(port, program, { headers })).status, 503);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "chain.getHead" });
  t.like(JSON.parse((await ask(port, "/", { method: "POST", body })).text), {
    error: { code: -32000, data: { reason: "STATE_NOT_READY", retryAfter: 1 } },
  });
  const nodeCall = JSON.stringify({ method: "nodeCall", params: [{ message: "getLastBlockNumber" }] });
  t.like(JSON.parse((await ask(port, "/", { method: "POST", body: nodeCall })).text), {
    ...{ result: 503, response: { errorCode: "STATE_NOT_READY", retryAfter: 1 } },
  });
  for (const protocol of rpcProtocols) {
    const client = connectRpc(protocol, "HTTP/2 by prior knowledge", { port });
    t.teardown(() => client.close());
    const failure = await t.throwsAsync(client.call(ChainService.method.getHead, {}), undefined, protocol);
    t.like(readFailure(failure), { reason: "STATE_NOT_READY" }, protocol);
    const health = await client.call(HealthService.method.getHealth, {});
    t.like(health, { snapshot: { status: HealthStatus.FAILING, boot: { current: "database" } } }, protocol);
  }
  await database.open();
  const { rpcUrl } = await node;
  t.is((await fetch(`${rpcUrl}/chain/head`)).status, 200);
});

testPostgres("the rate limit applies while the node boots", async (t) => {
  const { port, database, node } = await startWithoutDatabase(t, { "rate-limit": "5", "rate-limit-exempt": "" });
  const statuses: number[] = [];
  for (let i = 0; i < 8; i++) {
    statuses.push((await ask(port, "/info")).status);
  }
  t.is(statuses.at(0), 503);
  t.is(statuses.at(-1), 429);
  t.is((await ask(port, "/health")).status, 503, "probes are never limited");
  await database.open();
  await node;
});

testPostgres("WatchHealth streams the progress of the boot", async (t) => {
  const { port, database, node } = await startWithoutDatabase(t);
  const client = connectRpc("gRPC", "HTTP/2 by prior knowledge", { port });
  t.teardown(() => client.close());
  const watched = new AbortController();
  t.teardown(() => watched.abort());
  const seen: boolean[] = [];
  for await (const message of client.stream(HealthService.method.watchHealth, {}, watched.signal)) {
    const { snapshot } = message as unknown as { snapshot: { boot: { complete: boolean } } };
    seen.push(snapshot.boot.complete);
    if (seen.length === 1) {
      await database.open();
    }
    if (snapshot.boot.complete) {
      break;
    }
  }
  t.deepEqual([seen[0], seen.at(-1)], [false, true]);
  await node;
});

testPostgres("an abort ends the wait for the database at once, and closes the port and its streams", async (t) => {
  const controller = new AbortController();
  const { port, node } = await startWithoutDatabase(t, {}, controller.signal);
  const client = connectRpc("gRPC", "HTTP/2 by prior knowledge", { port });
  t.teardown(() => client.close());
  let onMessage = (): void => undefined;
  const first = new Promise<void>((resolve) => (onMessage = resolve));
  const watching = (async () => {
    for await (const _ of client.stream(HealthService.method.watchHealth, {}, AbortSignal.timeout(60_000))) {
      onMessage();
    }
  })().catch(() => undefined);
  await first;
  controller.abort();
  await t.throwsAsync(node, { instanceOf: StartAborted });
  await watching;
  await t.throwsAsync(ask(port, "/livez"), { code: "ECONNREFUSED" });
});

testPostgres("errors that waiting cannot fix end the start at once", async (t) => {
  const databases = postgres as Exclude<typeof postgres, string>;
  const url = await databases.createDatabase();
  t.teardown(() => databases.dropDatabase(url));
  const wrong = new URL(url);
  wrong.password = "wrong";
  const error = { instanceOf: StartError, message: /rejects the user or the password/ };
  await t.throwsAsync(startTestNode(t, { database: wrong.href }), error);
  const missing = new URL(url);
  missing.pathname = "/missing_database";
  const absent = { instanceOf: StartError, message: /does not exist; create it with: createdb missing_database/ };
  await t.throwsAsync(startTestNode(t, { database: missing.href }), absent);
  const reader = { instanceOf: StartError, message: /has not been prepared by this version/ };
  await t.throwsAsync(startTestNode(t, { database: url, role: "reader" }), reader);
});

testPostgres("a reader waits for its database as well, and needs only one of several servers", async (t) => {
  const databases = postgres as Exclude<typeof postgres, string>;
  const url = await databases.createDatabase();
  t.teardown(() => databases.dropDatabase(url));
  await (await startTestNode(t, { database: url, genesis: sampleGenesis })).stop();
  const first = await createForwarder(t, url);
  const second = await createForwarder(t, url);
  const port = await freePort();
  const flags = { database: `${first.url},${second.url}`, "rpc-port": String(port), role: "reader" };
  const node = startTestNode(t, flags);
  node.catch(() => undefined);
  await eventually("the node waits", async () =>
    (await ask(port, "/diagnostics")).text.includes("None of the databases is reachable"),
  );
  await second.open();
  t.is((await node).role, "reader");
  t.is((await ask(port, "/chain/head")).status, 200);
});

test("the start ends after the time limit, with advice in the error", async (t) => {
  const { createNodeCore } = await import("../../../src/node/lifecycle/core.js");
  const { DatabaseUnavailableError, untilDatabaseResponds } =
    await import("../../../src/node/lifecycle/database-wait.js");
  const { ProcessErrors } = await import("../../../src/health/process-errors.js");
  const { loadConfig } = await import("../../../src/config/config.js");
  const { openDatabase } = await import("../../../src/db/open.js");
  const url = "postgres://gatehouse:secret@127.0.0.1:9/name";
  const config = loadConfig({ flags: { database: url, "log-level": "silent" }, env: {}, cwd: "/" });
  const coreDeps = { config, processErrors: new ProcessErrors(), overload: undefined, stateHeadEveryMs: 1 };
  const core = createNodeCore({ ...coreDeps, wake: () => Promise.resolve() }, 1);
  t.teardown(() => core.shutdownHooks.run());
  await t.throwsAsync(
    untilDatabaseResponds(core, () => openDatabase(url), 0),
    {
      instanceOf: DatabaseUnavailableError,
      message:
        "The database 127.0.0.1:9/name cannot be reached (ECONNREFUSED); check that PostgreSQL is running there. The start has waited 0 s for the database.",
    },
  );
});
