/** Monitoring programs with the configurations of docs/probes.md, on nodes in each state, and what they do by default. */
import test, { type ExecutionContext } from "ava";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { HealthCheckResponse_ServingStatus as Serving, Health } from "../../gen/health/v1/health_pb.js";
import { failDatabase } from "../helpers/nodes/failing-database.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";
import { writeApacheConfiguration } from "../helpers/process/balancers.js";
import { adapt } from "../helpers/process/deployment.js";
import { startProxy } from "../helpers/process/caches.js";
import { isInstalled, run } from "../helpers/process/programs.js";
import { savedBlock } from "../helpers/process/saved-blocks.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { ask } from "../helpers/wire/plain-client.js";
import { listen } from "../helpers/nodes/lying-node.js";

const page = "docs/probes.md";
const text = await readFile(page, "utf8");

/** The ports of nodes in each state that a monitoring program can meet. */
async function startStates(t: Teardown) {
  const [ready, failing, dormant, stopped] = [
    await startMember(t),
    await startMember(t),
    await startTestNode(t),
    await startMember(t),
  ];
  await failDatabase(t, failing);
  await until(async () => (await ask(failing.port, "/readyz")).status === 503, "a failing node");
  await stopped.stop();
  return { ready, failing, dormant, stopped };
}

const expected = { ready: true, failing: false, dormant: false, stopped: false };

/** Returns the decision about the node in each state. */
async function decisions(
  t: Teardown,
  decide: (port: number) => boolean | Promise<boolean>,
): Promise<Record<string, boolean>> {
  const states = await startStates(t);
  const found: Record<string, boolean> = {};
  for (const [state, { port }] of Object.entries(states)) {
    found[state] = await decide(port);
  }
  return found;
}

/** Runs a shell command with this port. Returns the exit code. */
async function exitCode(command: string, port: number): Promise<number | null> {
  const child = spawn("sh", ["-c", command.replaceAll("53550", String(port))], { stdio: "ignore" });
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}

const whyNotFound = (program: string): string | undefined =>
  isInstalled(program) ? undefined : `${program} is not installed`;

const lines = [...text.matchAll(/^(curl|wget|wget2|\/usr\/lib\/nagios\/plugins\/check_\w+) .*$/gm)];

test("the page has commands for five programs", (t) => {
  t.deepEqual(
    lines.map(([, program]) => program!.split("/").at(-1)),
    ["curl", "wget", "wget2", "check_http", "check_curl"],
  );
});

for (const [line, program] of lines) {
  testUnless(whyNotFound(program!))(`decides right in each state: ${line}`, async (t) => {
    t.deepEqual(await decisions(t, async (port) => (await exitCode(line, port)) === 0), expected);
  });
}

test("the table of states is true", async (t) => {
  const { ready, failing, dormant } = await startStates(t);
  const rows = [...text.matchAll(/^\| ((?:ready|dormant follower|failing)[^|]*?) +\|(.*)\|$/gm)].slice(0, 3);
  const nodes = { ready, "dormant follower": dormant, "failing: chain or database": failing };
  t.deepEqual(
    rows.map(([, name]) => name),
    Object.keys(nodes),
  );
  for (const [, name, cells] of rows) {
    const node = nodes[name as keyof typeof nodes];
    const client = connectGrpc(node.port);
    t.teardown(() => client.close());
    const found: number[] = [];
    for (const path of ["/livez", "/readyz", "/health"]) {
      found.push((await ask(node.port, path)).status);
    }
    for (const service of ["rpc", "readiness", ""]) {
      const { status } = await client.call(Health.method.check, { service });
      found.push(status === Serving.SERVING ? 1 : 2);
    }
    t.deepEqual(cells!.split("|").map(Number), found, name);
  }
});

testUnless(whyNot("monit", "-V"))("monit decides right in each state", async (t) => {
  const dir = await temporaryDirectory(t);
  const states = await startStates(t);
  const block = await savedBlock(page, "data/monitrc");
  const checks = Object.entries(states).map(([state, { port }]) =>
    adapt(block, { "host gatehouse": `host ${state}`, "53550": String(port), "for 2 cycles": "", "for 3 cycles": "" })
      // Nothing may be restarted here.
      .replace(/exec "[^"]+"/, "alert"),
  );
  const file = join(dir, "monitrc");
  const own = ["set daemon 1", `set httpd unixsocket ${dir}/socket allow monit:monit`];
  const files = ["pidfile", "statefile", "idfile"].map((name) => `set ${name} ${dir}/${name}`);
  await writeFile(file, [...own, ...files, ...checks].join("\n"));
  await chmod(file, 0o600);
  const child = spawn("monit", ["-I", "-c", file], { stdio: "ignore" });
  const ended = once(child, "close");
  t.teardown(async () => {
    child.kill();
    await ended;
  });
  /** The state of each check, such as "OK" or "Connection failed". */
  const summary = async (): Promise<Record<string, string>> => {
    const { stdout } = await run("monit", ["-B", "-c", file, "summary"]).catch(() => ({ stdout: "" }));
    return Object.fromEntries(
      [...stdout.matchAll(/^ *(\w+) +(.*?) +Remote Host *$/gm)].map(([, name, state]) => [name, state]),
    ) as Record<string, string>;
  };
  const expectedStates = {
    ...{ ready: "OK", ready_live: "OK", failing: "Connection failed", failing_live: "OK" },
    ...{ dormant: "Connection failed", dormant_live: "OK" },
    ...{ stopped: "Connection failed", stopped_live: "Connection failed" },
  };
  let found: Record<string, string> = {};
  await until(async () => {
    found = await summary();
    return Object.entries(expectedStates).every(([name, state]) => found[name] === state);
  }, "the states of monit").catch((error: unknown) => t.fail(`${String(error)} ${JSON.stringify(found)}`));
  t.pass();
});

testUnless(whyNot("prometheus-blackbox-exporter", "--version"))(
  "the blackbox exporter decides right in each state, over HTTP and gRPC",
  async (t) => {
    const { port: exporter } = await startBlackbox(t, await savedBlock(page, "data/blackbox.yml"));
    const probe = async (module: string, target: string): Promise<boolean> => {
      const { text } = await ask(exporter, `/probe?module=${module}&target=${encodeURIComponent(target)}`);
      return text.includes("\nprobe_success 1\n");
    };
    t.deepEqual(await decisions(t, (port) => probe("gatehouse_ready", `http://127.0.0.1:${port}/readyz`)), expected);
    t.deepEqual(await decisions(t, (port) => probe("gatehouse_ready_grpc", `127.0.0.1:${port}`)), expected);
  },
);

/** Starts the blackbox exporter with this configuration. */
async function startBlackbox(t: Teardown, configuration: string) {
  const dir = await temporaryDirectory(t);
  const file = join(dir, "blackbox.yml");
  await writeFile(file, configuration);
  const port = await startProxy(t, {
    program: "prometheus-blackbox-exporter",
    prepare: (port) => Promise.resolve([`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`]),
    answers: async (port) => (await ask(port, "/-/healthy")).status === 200,
  });
  return { port };
}

testUnless(whyNot("zabbix_agentd", "--version"))("the item of Zabbix has the status in each state", async (t) => {
  const key = (await savedBlock(page, "data/zabbix.key")).trim();
  const item = async (port: number): Promise<boolean> =>
    (await run("zabbix_agentd", ["-t", key.replace("53550", String(port))])).stdout.includes("[s|200]");
  t.deepEqual(await decisions(t, item), expected);
});

testUnless(whyNot("keepalived", "--version"))(
  "keepalived accepts its configuration, and rejects a wrong one",
  async (t) => {
    const file = join(await temporaryDirectory(t), "keepalived.conf");
    const block = await savedBlock(page, "data/keepalived.conf");
    await writeFile(file, block);
    t.is(spawnSync("keepalived", ["--config-test", "--use-file", file]).status, 0);
    await writeFile(file, block.replace("status_code", "status_codes"));
    t.not(spawnSync("keepalived", ["--config-test", "--use-file", file]).status, 0);
  },
);

testUnless(whyNot("curl", "--version"))("the command of systemd waits until a node responds", async (t) => {
  const command = /^ExecStartPost=(.*)$/m.exec(await savedBlock(page, "data/gatehouse.conf"))![1]!;
  const port = await freePort();
  const child = spawn("bash", ["-c", command.replace("53550", String(port))], { stdio: "ignore" });
  t.teardown(() => child.kill());
  const ended = once(child, "close");
  await startMember(t, { "rpc-port": String(port), "port-drift": "deny" });
  t.deepEqual(await ended, [0, null]);
});

/** Starts a server that responds to all requests with this status. Returns its port, and the requests so far. */
async function startRecorder(t: Teardown, status: number) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const host = request.headers.host === undefined ? "without Host" : "with Host";
    requests.push(`${request.method} ${request.url} HTTP/${request.httpVersion} ${host}`);
    response.writeHead(status).end();
  });
  // Requests without Host are recorded, too.
  Object.assign(server, { requireHostHeader: false });
  return { port: await listen(t, server), requests };
}

/** Returns the first request of a program that checks the recorder at a port, and how the program decides about 503. */
async function firstRequest(
  t: ExecutionContext,
  start: (port: number) => Promise<unknown>,
  status = 200,
): Promise<string | undefined> {
  const { port, requests } = await startRecorder(t, status);
  await start(port);
  await until(() => requests.length > 0, "a request");
  return requests[0];
}

/** Starts a program with a configuration file until the end of the test. */
async function startWith(
  t: Teardown,
  program: string,
  configuration: string,
  args: (file: string) => readonly string[],
): Promise<void> {
  const file = join(await temporaryDirectory(t), "configuration");
  await writeFile(file, configuration);
  const child = spawn(program, args(file), { stdio: "ignore" });
  const ended = once(child, "close");
  t.teardown(async () => {
    child.kill();
    await ended;
  });
}

async function haproxyWith(t: Teardown, port: number, lines: string, server = ""): Promise<void> {
  const text = [
    "defaults\nmode http\ntimeout connect 1s\ntimeout client 5s\ntimeout server 5s",
    `listen b\nbind 127.0.0.1:${await freePort()}`,
    lines,
    `server s 127.0.0.1:${port} check inter 100 ${server}\n`,
  ];
  await startWith(t, "haproxy", text.join("\n"), (file) => ["-db", "-f", file]);
}

testUnless(whyNot("haproxy", "-v"))("what HAProxy sends by default", async (t) => {
  const sent = (lines: string) => firstRequest(t, (port) => haproxyWith(t, port, lines));
  t.is(await sent("option httpchk"), "OPTIONS / HTTP/1.0 without Host");
  t.is(
    await sent("option httpchk\nhttp-check send meth GET uri /readyz ver HTTP/1.1"),
    "GET /readyz HTTP/1.1 without Host",
  );
  t.is(
    await sent("option httpchk\nhttp-check send meth GET uri /readyz ver HTTP/1.1 hdr Host gatehouse"),
    "GET /readyz HTTP/1.1 with Host",
  );
  // Over HTTP/2 without Host, it sends the preface and settings, but no stream.
  let bytes = Buffer.alloc(0);
  let isClosed = false;
  const server = createTcpServer((socket) => {
    socket.on("data", (data) => (bytes = Buffer.concat([bytes, data])));
    socket.on("error", () => undefined).on("close", () => (isClosed = true));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  await haproxyWith(t, port, "option httpchk\nhttp-check send meth GET uri /readyz", "proto h2");
  await until(() => isClosed, "the end of a check");
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  t.true(bytes.toString("latin1").startsWith(preface));
  // The type of the first frame is SETTINGS; HEADERS, type 1, does not follow.
  t.false(frameTypes(bytes.subarray(preface.length)).includes(1));
});

/** Returns the types of HTTP/2 frames, up to the preface of another connection. */
function frameTypes(bytes: Buffer): number[] {
  const types: number[] = [];
  for (let i = 0; i + 9 <= bytes.length && bytes.toString("latin1", i, i + 3) !== "PRI";) {
    types.push(bytes[i + 3]!);
    i += 9 + bytes.readUIntBE(i, 3);
  }
  return types;
}

testUnless(whyNot("apache2", "-v"))("what Apache sends by default", async (t) => {
  const sent = (parameters: string, path = "") =>
    firstRequest(t, async (port) => {
      const dir = await temporaryDirectory(t);
      const member = `BalancerMember http://127.0.0.1:${port}${path} ${parameters} hcinterval=1`;
      const text = `<Proxy balancer://b>\n${member}\n</Proxy>\nProxyPass / balancer://b/`;
      const args = await writeApacheConfiguration(dir, await freePort(), text);
      const child = spawn("apache2", args, { stdio: "ignore" });
      const ended = once(child, "close");
      t.teardown(async () => {
        child.kill();
        await ended;
      });
    });
  t.is(await sent("hcmethod=OPTIONS"), "OPTIONS * HTTP/1.0 with Host");
  t.is(await sent("hcmethod=GET hcuri=/readyz"), "GET /readyz HTTP/1.0 with Host");
  t.is(await sent("hcmethod=GET11 hcuri=/readyz"), "GET /readyz HTTP/1.1 with Host");
  t.is(await sent("hcmethod=GET hcuri=/readyz", "/"), "GET ///readyz HTTP/1.0 with Host");
});

testUnless(whyNot("varnishd", "-V"))("what Varnish sends by default", async (t) => {
  const sent = (probe: string) =>
    firstRequest(t, async (port) => {
      const dir = await temporaryDirectory(t);
      const backend = `backend b { .host = "127.0.0.1"; .port = "${port}"; .probe = { ${probe} .interval = 1s; } }`;
      const listener = ["-a", `127.0.0.1:${await freePort()}`, "-s", "malloc,16m", "-j", "none", "-F"];
      await startWith(t, "varnishd", `vcl 4.1;\n${backend}\n`, (file) => ["-n", dir, "-f", file, ...listener]);
    });
  t.is(await sent(""), "GET / HTTP/1.1 with Host");
  t.is(await sent('.url = "/readyz";'), "GET /readyz HTTP/1.1 with Host");
  t.is(await sent('.request = "GET /readyz HTTP/1.1";'), "GET /readyz HTTP/1.1 without Host");
});

testUnless(whyNot("monit", "-V"))("monit asks for / by default", async (t) => {
  const sent = await firstRequest(t, async (port) => {
    const dir = await temporaryDirectory(t);
    const file = join(dir, "monitrc");
    const files = ["pidfile", "statefile", "idfile"].map((name) => `set ${name} ${dir}/${name}`);
    const check = `check host node with address 127.0.0.1\n if failed port ${port} protocol http then alert`;
    await writeFile(file, ["set daemon 1", ...files, check].join("\n"));
    await chmod(file, 0o600);
    const child = spawn("monit", ["-I", "-c", file], { stdio: "ignore" });
    const ended = once(child, "close");
    t.teardown(async () => {
      child.kill();
      await ended;
    });
  });
  t.is(sent, "GET / HTTP/1.1 with Host");
});

/** Default commands, their request, and their exit codes for 200, 503 and a refused connection. */
const commands: readonly (readonly [command: string, request: string, codes: readonly number[]])[] = [
  ["curl -s -o /dev/null http://127.0.0.1:53550/readyz", "GET /readyz HTTP/1.1 with Host", [0, 0, 7]],
  ["wget -q --tries=1 -O /dev/null http://127.0.0.1:53550/readyz", "GET /readyz HTTP/1.1 with Host", [0, 8, 4]],
  ["wget2 -q --tries=1 -O /dev/null http://127.0.0.1:53550/readyz", "GET /readyz HTTP/1.1 with Host", [0, 0, 0]],
  ["wget2 -q --tries=1 --spider http://127.0.0.1:53550/readyz", "HEAD /readyz HTTP/1.1 with Host", [0, 0, 0]],
  [
    "/usr/lib/nagios/plugins/check_http -I 127.0.0.1 -p 53550 -u /readyz",
    "GET /readyz HTTP/1.0 without Host",
    [0, 2, 2],
  ],
  ["/usr/lib/nagios/plugins/check_curl -H 127.0.0.1 -p 53550 -u /readyz", "GET /readyz HTTP/1.1 with Host", [0, 2, 2]],
];

for (const [command, request, codes] of commands) {
  const [program = ""] = command.split(" ");
  testUnless(whyNotFound(program))(`by default: ${command}`, async (t) => {
    const [good, bad] = [await startRecorder(t, 200), await startRecorder(t, 503)];
    const found: (number | null)[] = [];
    for (const port of [good.port, bad.port, await freePort()]) {
      found.push(await exitCode(command, port));
    }
    t.deepEqual(found, [...codes]);
    t.is(good.requests[0], request);
  });
}

testUnless(whyNot("prometheus-blackbox-exporter", "--version"))("the blackbox exporter by default", async (t) => {
  const { port } = await startBlackbox(t, "modules:\n  plain: { prober: http }\n");
  const [good, bad] = [await startRecorder(t, 204), await startRecorder(t, 503)];
  const probe = async (target: number): Promise<boolean> =>
    (await ask(port, `/probe?module=plain&target=127.0.0.1:${target}`)).text.includes("\nprobe_success 1\n");
  t.deepEqual([await probe(good.port), await probe(bad.port)], [true, false]);
  t.is(good.requests[0], "GET / HTTP/1.1 with Host");
});

testUnless(whyNot("zabbix_agentd", "--version"))("Zabbix by default", async (t) => {
  const bad = await startRecorder(t, 503);
  const item = async (port: number): Promise<string> =>
    (await run("zabbix_agentd", ["-t", `net.tcp.service[http,127.0.0.1,${port}]`])).stdout;
  t.regex(await item(bad.port), /\[u\|1\]/);
  t.regex(await item(await freePort()), /\[u\|0\]/);
});

testUnless(whyNot("caddy", "version"))("Caddy sends no checks by default", async (t) => {
  const [recorder, node] = [await startRecorder(t, 503), await startMember(t)];
  const port = await freePort();
  const dir = await temporaryDirectory(t);
  const globals = `{\n admin off\n auto_https off\n storage file_system ${dir}\n}\n`;
  const servers = `127.0.0.1:${recorder.port} 127.0.0.1:${node.port}`;
  const site = `http://127.0.0.1:${port} {\n reverse_proxy ${servers} {\n lb_policy round_robin\n }\n}\n`;
  await startWith(t, "caddy", globals + site, (file) => ["run", "--adapter", "caddyfile", "--config", file]);
  const statusOf = (): Promise<number> =>
    ask(port, "/readyz").then(
      ({ status }) => status,
      () => 0,
    );
  await until(async () => (await statusOf()) > 0, "a response");
  const statuses = [await statusOf(), await statusOf(), await statusOf(), await statusOf()];
  t.true(statuses.includes(200) && statuses.includes(503), statuses.join());
});
