/** The configuration of nginx, in a real nginx in front of a real node. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { HealthService } from "../../gen/gatehouse/health/v1/health_pb.js";
import { InfoService } from "../../gen/gatehouse/info/v1/info_pb.js";
import { maxBodyBytes } from "../../src/rpc/exchange/body.js";
import { makeCertificate, startMember } from "../helpers/nodes/start-node.js";
import { adapt, defaults } from "../helpers/process/deployment.js";
import { run } from "../helpers/process/programs.js";
import { startProxy, writeNginxConfiguration } from "../helpers/process/caches.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const text = await readFile("deploy/nginx/gatehouse.conf", "utf8");

test("has the port and the body limit of the node", (t) => {
  const servers = [...text.matchAll(/^\s*server (127\.0\.0\.1:\d+);$/gm)].map(([, server]) => server);
  t.deepEqual(servers, [`127.0.0.1:${defaults.rpcPort}`, `127.0.0.1:${defaults.rpcPort}`]);
  t.is(Number(/client_max_body_size (\d+)m;/.exec(text)![1]) * 1024 * 1024, maxBodyBytes);
});

interface Proxy {
  readonly url: string;
  readonly cert: string;
  /** Runs curl, and returns its output. */
  readonly curl: (...args: readonly string[]) => Promise<string>;
}

/** Starts nginx in front of a node's port. */
async function startNginx(t: Teardown, nodePort: number): Promise<Proxy> {
  const dir = await temporaryDirectory(t);
  const { cert, key } = await makeCertificate(dir);
  const curl: Proxy["curl"] = async (...args) => (await run("curl", ["-sS", "--cacert", cert, ...args])).stdout;
  const urlOf = (port: number): string => `https://127.0.0.1:${port}`;
  const port = await startProxy(t, {
    program: "nginx",
    async prepare(port) {
      const adapted = adapt(text, {
        [`127.0.0.1:${defaults.rpcPort}`]: `127.0.0.1:${nodePort}`,
        "listen 443 ": `listen 127.0.0.1:${port} `,
        // Not every machine has IPv6.
        "listen [::]:443 ssl http2;": "",
        "/etc/nginx/tls/gatehouse.crt": cert,
        "/etc/nginx/tls/gatehouse.key": key,
      });
      await writeFile(join(dir, "gatehouse.conf"), adapted);
      return await writeNginxConfiguration(dir, [`include ${dir}/gatehouse.conf;`]);
    },
    answers: async (port) => (await curl(`${urlOf(port)}/version`)) !== "",
  });
  return { url: urlOf(port), cert, curl };
}

const testNginx = testUnless(whyNot("nginx", "-v") ?? whyNot("curl", "--version"));

// A client address other than that of the proxy. On Linux, all of 127.0.0.0/8 is local.
const client = "127.0.0.2";

testNginx("forwards plain HTTP over HTTP/2 and HTTP/1.1, with body and path unchanged", async (t) => {
  const { port } = await startMember(t, { "trusted-proxies": "127.0.0.1" });
  const { url, curl } = await startNginx(t, port);
  for (const [flag, first] of [
    ["--http2", /^HTTP\/2 200 /],
    ["--http1.1", /^HTTP\/1\.1 200 /],
  ] as const) {
    const response = await curl(flag, "-D", "-", `${url}/readyz`);
    t.regex(response, first);
    t.regex(response, /access-control-allow-origin: \*/i);
    t.true(response.endsWith('{"status":"ok","checks":[]}'), response);
  }
  const call = await curl("-d", '{"jsonrpc":"2.0","id":1,"method":"x"}', `${url}/`);
  t.like(JSON.parse(call), { error: { code: -32601 } });
  // A proxy that normalizes paths would change the route of these.
  for (const path of [`/storage-program/stor-${"0".repeat(40)}/field/a%2F..%2Fb`, "/chain/../version", "//version"]) {
    const direct = await curl("--path-as-is", `http://127.0.0.1:${port}${path}`);
    t.is(await curl("--path-as-is", `${url}${path}`), direct, path);
  }
});

testNginx("forwards a body of the maximum size", async (t) => {
  const { port } = await startMember(t);
  const { url, curl } = await startNginx(t, port);
  const path = join(await temporaryDirectory(t), "body");
  const [start, end] = ['{"jsonrpc":"2.0","id":1,"method":"x","params":["', '"]}'];
  await writeFile(path, start.padEnd(maxBodyBytes - end.length, "x") + end);
  const response = await curl("--data-binary", `@${path}`, `${url}/`);
  t.like(JSON.parse(response), { error: { code: -32601 } });
});

testNginx("the node sees the real address of the client, not a claimed one, over plain HTTP and gRPC", async (t) => {
  const withProxy = await startMember(t, { "trusted-proxies": "127.0.0.1" });
  const proxy = await startNginx(t, withProxy.port);
  const claims = ["-H", "X-Forwarded-For: 192.0.2.1", "-H", "Forwarded: for=192.0.2.1"];
  const greeting = await proxy.curl("--interface", client, ...claims, `${proxy.url}/`);
  t.is((JSON.parse(greeting) as { yourIP: string }).yourIP, client);

  const ca = await readFile(proxy.cert);
  const address = { host: "127.0.0.1", port: Number(new URL(proxy.url).port), localAddress: client };
  const transport = createGrpcTransport({
    baseUrl: proxy.url,
    nodeOptions: { createConnection: () => connect({ ...address, ca, ALPNProtocols: ["h2"] }) },
  });
  const headers = { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.1" };
  t.is((await createClient(InfoService, transport).getGreeting({}, { headers })).yourIp, client);

  const withoutProxy = await startMember(t);
  const other = await startNginx(t, withoutProxy.port);
  const unseen = await other.curl("--interface", client, `${other.url}/`);
  t.is((JSON.parse(unseen) as { yourIP: string }).yourIP, "127.0.0.1");
});

testNginx("gRPC, Connect and gRPC-Web share one port and its keep-alive connections", async (t) => {
  const node = await startMember(t);
  const { url, cert, curl } = await startNginx(t, node.port);
  const version = JSON.parse(await curl(`${url}/version`)) as string;
  const ca = await readFile(cert);
  const transports = [
    createGrpcTransport({ baseUrl: url, nodeOptions: { ca } }),
    createConnectTransport({ baseUrl: url, httpVersion: "2", nodeOptions: { ca } }),
    createConnectTransport({ baseUrl: url, httpVersion: "1.1", nodeOptions: { ca } }),
    createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1", nodeOptions: { ca } }),
  ];
  for (let round = 0; round < 20; round++) {
    const versions = transports.map((transport) => createClient(InfoService, transport).getVersion({}));
    for (const response of await Promise.all(versions)) {
      t.is(response.version, version);
    }
    t.is(await curl(`${url}/version`), JSON.stringify(version));
  }

  for (const transport of transports) {
    const controller = new AbortController();
    const watching = createClient(HealthService, transport).watchHealth({}, { signal: controller.signal });
    const first = await watching[Symbol.asyncIterator]().next();
    t.true(first.done === false && first.value.snapshot!.accepting);
    controller.abort();
  }
});
