/** The attestation API of a running node. */
import test from "ava";
import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buildPresentation, notaryKey } from "../helpers/process/presentation.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { silentPeer, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { likeLists } from "../helpers/like-lists.js";

async function start(t: Teardown, flags: Readonly<Record<string, string | boolean>> = {}): Promise<TestNode> {
  const dir = await temporaryDirectory(t);
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const allFlags = {
    "tlsnotary-enabled": true,
    "notary-keys": notaryKey,
    peers: join(dir, "peers.json"),
    "allow-private-peers": true,
    ...flags,
  };
  return await startTestNode(t, allFlags, dir);
}

const attestation = buildPresentation().toString("base64");
const verify = (port: number, text: string) =>
  ask(port, "/tlsnotary/verify", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ attestation: text }),
  });

interface Subsystem {
  readonly subsystems: Readonly<Record<string, { readonly status: string; readonly enabled: boolean }>>;
}

test("the subsystem is ready with the verifier, and skipped if the node is dormant or it is disabled", async (t) => {
  const state = async ({ port }: TestNode) => (await askJson<Subsystem>(port, "/health")).subsystems["tlsnotary"];
  t.like(await state(await start(t)), { status: "ready", enabled: true });
  t.like(await state(await startTestNode(t, { "tlsnotary-enabled": true })), { status: "skipped", enabled: true });
  const without = await start(t, { "tlsnotary-enabled": false });
  t.like(await state(without), { status: "skipped", enabled: false });
  t.is((await ask(without.port, "/tlsnotary/health")).status, 404);
});

test("without a trusted notary the node warns at boot, and rejects every attestation", async (t) => {
  const node = await start(t, { "notary-keys": "" });
  const warning = "--notary-keys is empty, so every attestation is rejected.";
  t.true(node.warnings.includes(warning));
  const { status, text } = await verify(node.port, attestation);
  t.is(status, 400);
  t.regex(text, /is not trusted here/);
  const health = await ask(node.port, "/tlsnotary/health");
  t.is(health.status, 503);
  t.like(JSON.parse(health.text), { status: "unhealthy", serverRunning: true, error: warning });
  t.like(await askJson(node.port, "/tlsnotary/info"), { port: null, publicKey: null, running: true, notaryKeys: [] });
});

test("the info lists the trusted notaries", async (t) => {
  const other = `1:02${"ab".repeat(32)}`;
  const { port } = await start(t, { "notary-keys": `${notaryKey},${other}` });
  likeLists(t, await askJson(port, "/tlsnotary/info"), {
    ...{ enabled: true, port: null, publicKey: notaryKey, running: true },
    notaryKeys: [notaryKey, other],
  });
  t.is((await ask(port, "/tlsnotary/health")).status, 200);
});

test("applies --attestation-max-age and --attestation-servers", async (t) => {
  const old = await verify((await start(t, { "attestation-max-age": "60" })).port, attestation);
  t.is(old.status, 400);
  t.regex(old.text, /--attestation-max-age/);
  const unnamed = await verify((await start(t, { "attestation-servers": "api.example" })).port, attestation);
  t.is(unnamed.status, 400);
  t.regex(unnamed.text, /--attestation-servers/);
});

test("responds to 1,000 concurrent attestations and to /health, and verifies the next one", async (t) => {
  const { port } = await start(t);
  const noise = Buffer.alloc(300_000, 7).toString("base64");
  const responses = Array.from({ length: 1_000 }, async (_, i) => {
    const response = await verify(port, i % 10 === 0 ? noise : attestation);
    return [response.status, response.headers["retry-after"]] as const;
  });
  let probes = 0;
  let isDone = false;
  const probing = (async () => {
    const isRunning = (): boolean => !isDone;
    while (isRunning()) {
      t.is((await ask(port, "/health")).status, 200);
      probes++;
    }
  })();
  const statuses = await Promise.all(responses);
  isDone = true;
  await probing;
  t.true(statuses.every(([status]) => [200, 400, 503].includes(status)));
  t.true(statuses.every(([status, retryAfter]) => status !== 503 || Number(retryAfter) > 0));
  t.true(statuses.some(([status]) => status === 200));
  t.true(probes > 0);
  t.is((await verify(port, attestation)).status, 200);
});

test("the info shows the key of the node's own notary, and health follows it", async (t) => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "secp256k1" });
  let isUp = true;
  // The notary is a server of another project. The node only requests its /info.
  const notary = createServer((request, response) => {
    if (!isUp) {
      response.destroy();
    } else if (request.url === "/info") {
      response.end(
        JSON.stringify({ version: "0.1.0-alpha.12", publicKey: publicKey.export({ type: "spki", format: "pem" }) }),
      );
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => notary.listen(0, "127.0.0.1", resolve));
  t.teardown(() => notary.close());
  const { port: notaryPort } = notary.address() as AddressInfo;
  const notaryUrl = "wss://notary.example:7047";
  const up = await start(t, {
    ...{ "notary-url": `http://127.0.0.1:${notaryPort}`, "notary-public-url": notaryUrl },
    "notary-proxy-url": "wss://notary.example:55688",
  });
  await until(async () => (await ask(up.port, "/tlsnotary/health")).status === 200);
  const info = await askJson<{ publicKey: string }>(up.port, "/tlsnotary/info");
  t.like(info, { enabled: true, running: true, port: notaryPort, notaryAnswers: true });
  t.regex(info.publicKey, /^1:0[23][0-9a-f]{64}$/);
  // The request of existing clients.
  const params = [{ message: "tlsnotary.getInfo", data: {} }];
  const { text } = await ask(up.port, "/", { method: "POST", body: JSON.stringify({ method: "nodeCall", params }) });
  const proxyUrl = "wss://notary.example:55688";
  t.like(JSON.parse(text), {
    ...{ result: 200, response: { notaryUrl, proxyUrl, publicKey: info.publicKey, version: "0.1.0-alpha.12" } },
  });

  isUp = false;
  const down = await start(t, { "notary-url": `http://127.0.0.1:${notaryPort}` });
  const health = await ask(down.port, "/tlsnotary/health");
  t.is(health.status, 503);
  t.like(JSON.parse(health.text), {
    status: "unhealthy",
    serverRunning: true,
    error: "The node's own notary does not respond.",
  });
  t.like(await askJson(down.port, "/tlsnotary/info"), { port: notaryPort, publicKey: null, notaryAnswers: false });
  t.is((await verify(down.port, attestation)).status, 200, "attestations of other notaries are still verified");
});
