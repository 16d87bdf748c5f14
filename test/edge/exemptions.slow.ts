/**
 * What limits leave out is limited otherwise. Each row of the table of exemptions is flooded for some seconds: the node
 * lives, its memory stays within the limit, and clients of another address are served.
 */
import test, { type ExecutionContext } from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { authorityDirectory, makeCertificate, silentPeer } from "../helpers/nodes/start-node.js";
import { until } from "../helpers/nodes/until.js";
import { testKey } from "../helpers/chain/keys.js";
import { writeAs } from "../helpers/chain/submit.js";
import { createPublic } from "../helpers/chain/transactions.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { exempt, type Flood, floods, startFlood } from "../helpers/nodes/floods.js";

/** Address of the clients that are no attackers. */
const other = "127.0.0.6";
const floodMs = 2_000;
/** Requests of others during a flood. */
const minRequests = 30;
/** Memory of the node, and the JavaScript heap that docs/running.md recommends for it, in MiB. */
const [memoryMib, heapMib] = [256, 160];
/** Memory of code and libraries that processes share, which the limit leaves out, in MiB. */
const sharedMib = 64;

test("the table of exemptions has a flood for each row, and no other", async (t) => {
  const page = await readFile("docs/threat-model.md", "utf8");
  const section = /## Exemptions\n(.*?)\n## /s.exec(page)![1]!;
  const names = [...section.matchAll(/^\| ([^|]+?) +\|/gm)].map(([, name]) => name!).slice(2);
  t.deepEqual(names.sort(), Object.keys(floods).sort());
});

/** Sends requests of another address over new connections, and returns their statuses. */
async function judge(port: number, ca: string | undefined): Promise<number[]> {
  const statuses: number[] = [];
  const endMs = performance.now() + floodMs;
  while (performance.now() < endMs || statuses.length < minRequests) {
    for (const path of ["/livez", "/version", "/chain/head"]) {
      statuses.push(Number((await get(port, ca, path))?.slice(9, 12)));
    }
    await sleep(20);
  }
  return statuses;
}

/** Returns the bytes of a response. */
async function get(port: number, ca: string | undefined, path: string): Promise<string> {
  const to = { host: "127.0.0.1", port, localAddress: other };
  const socket = ca === undefined ? connect(to) : connectTls({ ...to, ca });
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) {
    text += String(chunk);
  }
  return text;
}

async function residentMib(pid: number): Promise<number> {
  return Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
}

/** Creates a document with very many fields, and returns the path of its proof. */
async function createDocument(port: number): Promise<string> {
  const json = `{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":1`).join()}}`;
  await writeAs(testKey(2), port, 1, createPublic("fields", json));
  const { programs } = await askJson<{ programs: { storageAddress: string }[] }>(
    port,
    "/storage-program/search?q=fields",
  );
  return `/state/proof?storageAddress=${programs[0]!.storageAddress}&withDocument=true`;
}

async function startTarget(t: ExecutionContext, { flags = [], isTls, hasDocument }: Flood) {
  const dir = await authorityDirectory(t, testKey(1));
  await writeFile(join(dir, "peers.json"), JSON.stringify([{ url: silentPeer }]));
  const files = isTls && (await makeCertificate(dir));
  const tls = files === undefined ? [] : ["--tls-cert", files.cert, "--tls-key", files.key];
  const chain = ["--genesis", join(dir, "genesis.json"), "--peers", join(dir, "peers.json")];
  const node = await startNodeProcess(
    t,
    dir,
    [...chain, "--memory", String(memoryMib), "--rate-limit-exempt", exempt, ...tls, ...flags],
    ["env", `NODE_OPTIONS=--max-old-space-size=${heapMib}`, "MALLOC_ARENA_MAX=2"],
  );
  const ca = files && (await readFile(files.cert, "utf8"));
  let ports: Readonly<Record<string, { readonly actual: number }>> = {};
  await until(async () => {
    const [, body] = (await get(node.port, ca, "/health")).split("\r\n\r\n");
    const health = JSON.parse(body!) as { boot: { complete: boolean }; accepting: boolean; ports: typeof ports };
    ({ ports } = health);
    return health.boot.complete && health.accepting;
  });
  const document = hasDocument && (await createDocument(node.port));
  const actual = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, port.actual]));
  const target = { dir, ports: actual, document };
  return { node, ca, target };
}

for (const [name, flood] of Object.entries(floods)) {
  test.serial(`${name}: a flood leaves the node within its memory, and others served`, async (t) => {
    const { node, ca, target } = await startTarget(t, flood);
    await startFlood(t, name, target);
    const statuses = await judge(node.port, ca);
    t.is(node.child.exitCode, null);
    t.deepEqual(new Set(statuses), new Set([200]));
    const mib = await residentMib(node.child.pid!);
    t.log(`${statuses.length} requests of others; ${mib.toFixed(0)} MiB at most`);
    t.true(mib < memoryMib + sharedMib, `${mib} MiB`);
    node.child.kill("SIGTERM");
    t.is(await node.ended, 0);
  });
}
