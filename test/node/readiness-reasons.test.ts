/** Every reason for which a node does not accept transactions is shown wherever an operator looks. */
import test, { type ExecutionContext } from "ava";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { readinessReasons } from "../../src/node/network/readiness-reasons.js";
import { testKey } from "../helpers/chain/keys.js";
import { makeBlocks, networkOf, seedBlocks, sendAll, startMemberOf, statusAt } from "../helpers/nodes/network.js";
import { startOddPeer } from "../helpers/nodes/odd-peer.js";
import { freePort } from "../helpers/nodes/free-port.js";
import { runCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { openSqlite } from "../helpers/databases/databases.js";
import { sharedPostgres } from "../helpers/databases/postgres-server.js";
import {
  authorityDirectory,
  sampleGenesis,
  silentPeer,
  startMember,
  startTestNode,
} from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { eventually, until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { ask } from "../helpers/wire/plain-client.js";

const [authority, follower] = [testKey(1), testKey(2)];
const postgres = await sharedPostgres();
const { genesis, genesisHash } = networkOf(authority);

/** A node that has a reason, and the text of it. */
interface Example {
  readonly node: { readonly port: number; readonly dir: string };
  readonly reason: string;
  /** Places that do not show it, each with why not. */
  readonly except?: Readonly<Record<string, string>>;
}

/** Starts a server that accepts connections and never responds. */
async function startHanging(t: Teardown): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket)).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Creates the directory of an authority with this many blocks. */
async function directoryWith(t: Teardown, blocks: number): Promise<string> {
  const dir = await temporaryDirectory(t);
  await seedBlocks(join(dir, "gatehouse.sqlite"), authority, blocks);
  return dir;
}

const examples: Readonly<Record<keyof typeof readinessReasons, (t: Teardown) => Promise<Example>>> = {
  async stopping(t) {
    const dir = await authorityDirectory(t, authority);
    const node = await startNodeProcess(t, dir, ["--shutdown-delay", "3600"]);
    node.child.kill("SIGTERM");
    const served = "The node serves and accepts until the delay is over.";
    return {
      node: { port: node.port, dir },
      reason: "The node is shutting down",
      except: { "/health": served, "gatehouse health": served, "gatehouse doctor": served },
    };
  },
  async notWriter(t) {
    const databases = postgres as Exclude<typeof postgres, string>;
    const database = await databases.createDatabase();
    t.teardown(() => databases.dropDatabase(database));
    const dir = await authorityDirectory(t, authority);
    await startTestNode(t, { database, genesis: "genesis.json" }, dir);
    const standbyDir = await authorityDirectory(t, authority);
    const node = await startTestNode(t, { role: "standby", database }, standbyDir);
    return { node, reason: "Standby: " };
  },
  async booting(t) {
    const port = await freePort();
    const stop = new AbortController();
    t.teardown(() => stop.abort());
    const dir = await temporaryDirectory(t);
    const flags = {
      database: "postgres://user:password@127.0.0.1:9/name",
      "rpc-port": String(port),
      genesis: sampleGenesis,
    };
    startTestNode(t, flags, dir, { signal: stop.signal }).catch(() => undefined);
    await eventually("the port is open", async () => (await ask(port, "/livez")).status === 200);
    const why = "It shows which step the boot has reached.";
    return {
      node: { port, dir },
      reason: readinessReasons.booting(),
      except: { "/health": why, "gatehouse health": why, "gatehouse doctor": why },
    };
  },
  async chainFailed(t) {
    const node = await startMember(t);
    node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message: "no disk", source: "test" } });
    return { node, reason: readinessReasons.chainFailed("no disk") };
  },
  async stalled(t) {
    const node = await startMember(t);
    await node.mainLoop.stop(readinessReasons.stalled());
    return { node, reason: readinessReasons.stalled() };
  },
  async forked(t) {
    const dir = await directoryWith(t, 3);
    const other = await makeBlocks(t, authority, 5);
    const peer = await startOddPeer(t, {
      ...{ key: testKey(50), genesisHash, status: () => statusAt(other.at(-1)), blocks: sendAll(other) },
    });
    const node = await startMemberOf(t, { key: authority, genesis, seeds: [peer.endpoint], dir });
    return { node, reason: readinessReasons.forked("").trim() };
  },
  async noNetwork(t) {
    return { node: await startTestNode(t), reason: readinessReasons.noNetwork({ role: "writer" }) };
  },
  async noChain(t) {
    const dir = await directoryWith(t, 1);
    const sqlite = openSqlite(t, join(dir, "gatehouse.sqlite"));
    await sqlite("snapshot_join").insert({
      ...{ id: 1, snapshot: Buffer.alloc(0), block_number: 1, lowest_header: 2, leaf_count: 0 },
    });
    const node = await startMemberOf(t, { key: follower, genesis, dir, seeds: [silentPeer] });
    return { node, reason: readinessReasons.noChain() };
  },
  async uncalledPeers(t) {
    const seeds = [await startHanging(t)];
    const node = await startMemberOf(t, { key: follower, genesis, seeds });
    const over = "The node gives the call up before.";
    return {
      node,
      reason: readinessReasons.uncalledPeers(),
      except: { "gatehouse health": over, "gatehouse doctor": over },
    };
  },
  async missingBlocks(t) {
    const blocks = await makeBlocks(t, authority, 2);
    const peer = await startOddPeer(t, {
      ...{ key: testKey(50), genesisHash, status: () => statusAt(blocks.at(-1)), blocks: () => Promise.resolve() },
    });
    const node = await startMemberOf(t, { key: follower, genesis, seeds: [peer.endpoint] });
    return { node, reason: readinessReasons.missingBlocks(0n, 2n, undefined) };
  },
  async unreportedBlock(t) {
    const node = await startMemberOf(t, { key: follower, genesis, seeds: [silentPeer] });
    return { node, reason: readinessReasons.unreportedBlock(`${silentPeer}:`) };
  },
  async restoredAlone(t) {
    const dir = await directoryWith(t, 1);
    await writeFile(join(dir, "restored"), "2026-01-01T00:00:00.000Z\n");
    const node = await startMemberOf(t, { key: authority, genesis, dir, flags: { recover: false } });
    return { node, reason: readinessReasons.restoredAlone(1n) };
  },
  async emptyAlone(t) {
    const node = await startMemberOf(t, { key: authority, genesis, flags: { recover: false } });
    return { node, reason: readinessReasons.emptyAlone() };
  },
  async unconfirmedBlock(t) {
    const dir = await directoryWith(t, 1);
    const node = await startMemberOf(t, {
      key: authority,
      genesis,
      dir,
      seeds: [silentPeer],
      flags: { recover: false },
    });
    return { node, reason: readinessReasons.unconfirmedBlock(1n) };
  },
};

for (const [name, start] of Object.entries(examples)) {
  const testIt = name === "notWriter" ? testUnless(typeof postgres === "string" ? postgres : undefined) : test;
  testIt(`shows why a node does not accept transactions: ${name}`, async (t: ExecutionContext) => {
    const { node, reason, except = {} } = await start(t);
    const cli = async (...args: string[]): Promise<string> => (await runCli(args)).stdout;
    const text = async (path: string): Promise<string> => (await ask(node.port, path)).text;
    const places: Readonly<Record<string, () => Promise<string>>> = {
      "/health": () => text("/health"),
      "/readyz": () => text("/readyz"),
      "gatehouse health": () => cli("health", "--node", `http://127.0.0.1:${node.port}`),
      "gatehouse doctor": () =>
        cli(...["doctor", "--data-dir", node.dir, "--host", "127.0.0.1", "--rpc-port", String(node.port), "--json"]),
    };
    for (const [place, read] of Object.entries(places)) {
      if (except[place] === undefined) {
        let last = "";
        await until(async () => {
          last = (await read()).replaceAll('\\"', '"');
          return last.includes(reason);
        }).catch(() => t.fail(`${place}: ${last}`));
      }
    }
    t.pass();
  });
}
