/**
 * Nodes over a cluster of Patroni whose members are killed, frozen and switched over, with the files of deploy/patroni. The
 * log has the seconds that docs/operations.md shows. PATRONI_LOGS names a directory for the logs of all processes.
 */
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { readLease } from "../../src/chain/writer/writer-lease-store.js";
import { withDatabase } from "../../src/db/open.js";
import { testKey } from "../helpers/chain/keys.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { type PatroniCluster, startPatroniCluster, whyNoPatroni } from "../helpers/databases/patroni-cluster.js";
import { changeUnderLoad } from "../helpers/databases/switchovers.js";
import { type RunningCli, startCli } from "../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { eventually, until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { askJson } from "../helpers/wire/plain-client.js";
import type { HealthBody } from "../helpers/process/health-shape.js";

const authority = testKey(1);
const testPatroni = testUnless(whyNoPatroni);

/** The shortest times that Patroni permits. */
const times = { ttl: 20, loop_wait: 1, retry_timeout: 3 };
/** Time in milliseconds for which a fault lasts that nothing replaces. */
const faultMs = 8_000;

async function startRole(t: Teardown, database: string, role: "writer" | "standby" | "reader"): Promise<RunningCli> {
  const dir = role === "reader" ? await temporaryDirectory(t) : await authorityDirectory(t, authority);
  const genesis = role === "writer" ? ["--genesis", join(dir, "genesis.json")] : [];
  const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  const node = await startCli(t, [
    ...["start", "--data-dir", dir, "--database", database, "--role", role, "--recover"],
    ...[...genesis, ...ports, "--log-level", "info"],
  ]);
  if (process.env["PATRONI_LOGS"] !== undefined) {
    t.teardown(() => writeFile(`${process.env["PATRONI_LOGS"]!}/${role}-${node.port}.log`, node.stderr()));
  }
  return node;
}

/** Reads of a node that go to its database, all the while. */
function watchReads({ ready }: RunningCli) {
  const client: Client<typeof ChainService> = createClient(
    ChainService,
    createGrpcTransport({ baseUrl: ready.rpc, defaultTimeoutMs: 30_000 }),
  );
  let servedMs = performance.now();
  let longestMs = 0;
  const stopping = new AbortController();
  const served = (): void => {
    longestMs = Math.max(longestMs, performance.now() - servedMs);
    servedMs = performance.now();
  };
  const reads = (async () => {
    while (!stopping.signal.aborted) {
      // No transaction has this hash, so no cache has the response.
      const read = client.getTransaction({ hash: `0x${randomBytes(32).toString("hex")}` });
      await read.then(served, (error: unknown) => {
        if (ConnectError.from(error).code === Code.NotFound) {
          served();
        }
      });
      await sleep(20);
    }
  })();
  return {
    /** Returns the longest time without a served read since the last call, in milliseconds. */
    takeLongestMs(): number {
      const ms = Math.max(longestMs, performance.now() - servedMs);
      longestMs = 0;
      return ms;
    },
    async stop(): Promise<void> {
      stopping.abort();
      await reads;
    },
  };
}

interface Fault {
  readonly name: string;
  readonly run: (cluster: PatroniCluster) => Promise<void>;
}

/** Waits until the role of the primary has moved from a member. */
async function untilReplaced(cluster: PatroniCluster, before: string): Promise<void> {
  await until(async () => (await cluster.primaryName()) !== before, "another member is the primary");
}

const faults: readonly Fault[] = [
  {
    name: "PostgreSQL of the primary killed",
    async run(cluster) {
      const before = await cluster.primaryName();
      await cluster.killPrimary();
      await untilReplaced(cluster, before);
      await cluster.hasStandbys();
    },
  },
  {
    name: "switchover",
    async run(cluster) {
      const before = await cluster.primaryName();
      await cluster.switchOver();
      await untilReplaced(cluster, before);
      await cluster.hasStandbys();
    },
  },
  {
    name: "etcd away",
    async run(cluster) {
      const startAgain = await cluster.stopEtcd();
      await sleep(faultMs);
      await startAgain();
      await cluster.hasStandbys();
    },
  },
  {
    name: "machine of the primary frozen",
    async run(cluster) {
      const before = await cluster.primaryName();
      const resume = await cluster.freezePrimary();
      await untilReplaced(cluster, before);
      resume();
      await cluster.hasStandbys();
    },
  },
];

testPatroni.serial(
  "nodes over a cluster lose nothing, keep one writer, and say what is wrong, whatever fails",
  async (t) => {
    t.timeout(400_000, "a loaded machine");
    const cluster = await startPatroniCluster(t, times);
    const writer = await startRole(t, cluster.urls, "writer");
    // This node sees one server only, which changes.
    const proxied = await startRole(t, cluster.proxyUrl, "standby");
    const standby = await startRole(t, cluster.urls, "standby");
    const reader = await startRole(t, cluster.urls, "reader");
    const before = await withDatabase(cluster.urls, ({ read }) => readLease(read));
    const watches = [writer, standby, reader].map(watchReads);
    t.teardown(() => Promise.all(watches.map((watch) => watch.stop())));
    const said = new Set<string>();
    const health = watchHealth(writer, said);
    t.teardown(() => health.stop());
    const readGaps: number[][] = [];
    const { withoutMs, blocks, transactions, ...wrong } = await changeUnderLoad({
      url: writer.ready.rpc,
      changes: faults.length,
      async change(i) {
        watches.forEach((watch) => watch.takeLongestMs());
        await faults[i]!.run(cluster);
        readGaps.push(watches.map((watch) => watch.takeLongestMs()));
      },
    });
    for (const [i, { name }] of faults.entries()) {
      const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
      const [ofWriter, ofStandby, ofReader] = readGaps[i]!.map(seconds);
      t.log(
        `${name}: no block for ${seconds(withoutMs[i]!)} s; ` +
          `no reads of the writer ${ofWriter} s, standby ${ofStandby} s, reader ${ofReader} s`,
      );
    }
    t.log(`${transactions} transactions, ${blocks} blocks`);
    t.deepEqual(wrong, { lost: [], doubled: [] });
    const after = await withDatabase(cluster.urls, ({ read }) => readLease(read));
    t.deepEqual([after.epoch, after.holder], [before.epoch, before.holder], "one writer, the same all the time");
    t.true(
      [...said].some((message) =>
        /\(none of its 3 servers is .*server 1: .*server 2: .*server 3: .*\)\.$/.test(message),
      ),
      [...said].join("\n"),
    );
    // The node behind the proxy takes over, and outlives a switchover as well.
    standby.child.kill("SIGTERM");
    await standby.ended;
    writer.child.kill("SIGTERM");
    await writer.ended;
    await until(() => proxied.stdout().includes(`"role":"writer"`), "the node behind the proxy takes over");
    const client = createClient(ChainService, createGrpcTransport({ baseUrl: proxied.ready.rpc }));
    await cluster.switchOver();
    const transaction = signTransaction(testKey(9), 1, createPublic("after", "1"));
    await eventually("the node behind the proxy accepts a transaction", async () => {
      const { hash } = await client.submitTransaction({ transaction });
      return hash !== "";
    });
    const hash = sha256(transaction.body);
    await eventually(
      "a block has it",
      async () => (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED,
    );
  },
);

/** Collects the errors that the chain shows in `/health`. */
function watchHealth({ port }: RunningCli, said: Set<string>) {
  const stopping = new AbortController();
  const polls = (async () => {
    while (!stopping.signal.aborted) {
      const { subsystems } = await askJson<HealthBody>(port, "/health");
      said.add(subsystems["chain"]!.lastError?.message ?? "");
      await sleep(100);
    }
  })();
  polls.catch(() => undefined);
  return {
    async stop(): Promise<void> {
      stopping.abort();
      await polls.catch(() => undefined);
    },
  };
}
