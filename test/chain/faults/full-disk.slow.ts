/** Node whose disk is full for a while. Requires Linux, where the test mounts a small disk for the node. */
import { appendFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mempoolSuffix } from "../../../src/db/open.js";
import type { HealthBody } from "../../helpers/process/health-shape.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import { areIncluded, chainClient, newProgram } from "../../helpers/chain/submit.js";
import { testKey } from "../../helpers/chain/keys.js";
import { afterMounting, whyNotMounted } from "../../helpers/process/programs.js";
import { ask, askJson } from "../../helpers/wire/plain-client.js";
import { readFailure } from "../../helpers/wire/rpc-clients.js";
import { type RunningCli, startNodeProcess } from "../../helpers/nodes/run-cli.js";
import type { Teardown } from "../../helpers/nodes/teardown.js";
import { until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const testMounted = testUnless(whyNotMounted("mount -t tmpfs tmpfs /mnt"));
/** Duration of the full disk: longer than the node's retry interval and than any timeout of the database library. */
const fullForMs = 7_000;

interface FillingNode extends RunningCli {
  /** Submits another transaction, with a document of 400 kB by default. Rejects if the node rejects it. */
  submit(bytes?: number): Promise<void>;
  /** Fills the node's disk completely. */
  fill(): Promise<void>;
  /** Frees space on the node's disk. */
  free(): Promise<void>;
  /** Waits until all acknowledged transactions are in blocks. Returns their number. */
  included(): Promise<number>;
}

/**
 * Starts a node whose database is on a small disk.
 *
 * @param elsewhere name of a database file that is not on this disk.
 * @param ballastBytes size of a file that takes up space on the disk, which has 48 MiB.
 */
async function startOnSmallDisk(t: Teardown, elsewhere?: string, ballastBytes = 42_000_000): Promise<FillingNode> {
  const dir = await authorityDirectory(t, authority);
  const disk = join(dir, "disk");
  await mkdir(disk);
  let mount = `mount -t tmpfs -o size=48m tmpfs ${disk} && head -c ${ballastBytes} /dev/zero > ${disk}/ballast`;
  if (elsewhere !== undefined) {
    mount += ` && ln -s ${join(dir, elsewhere)} ${join(disk, elsewhere)}`;
  }
  const flags = ["--genesis", join(dir, "genesis.json"), "--database", `sqlite:${disk}/node.sqlite`];
  const node = await startNodeProcess(t, dir, flags, afterMounting(mount));
  const client = chainClient(node);
  // Other processes see the node's mount through its entry in /proc.
  const ballast = `/proc/${node.child.pid}/root${disk}/ballast`;
  const acknowledged: string[] = [];
  let nonce = 0;
  return {
    ...node,
    async submit(bytes = 400_000) {
      nonce++;
      const document = JSON.stringify({ text: "x".repeat(bytes) });
      acknowledged.push((await client.submitTransaction({ transaction: newProgram(alice, nonce, document) })).hash);
    },
    async fill() {
      for (const block of [1_000_000, 4_096]) {
        while (await tryAppend(ballast, block)) {
          // Another block may fit.
        }
      }
    },
    free: () => rm(ballast),
    async included() {
      await until(() => areIncluded(client, ...acknowledged));
      return acknowledged.length;
    },
  };
}

/** Appends bytes to a file. Returns false if the disk is full. */
async function tryAppend(path: string, bytes: number): Promise<boolean> {
  try {
    await appendFile(path, Buffer.alloc(bytes));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") {
      return false;
    }
    throw error;
  }
}

/** Submits a transaction. Returns true if it is rejected because the database is unavailable. */
async function isRejected(node: FillingNode, bytes?: number): Promise<boolean> {
  try {
    await node.submit(bytes);
    return false;
  } catch (error) {
    const { reason } = readFailure(error);
    return reason === "DATABASE_UNAVAILABLE";
  }
}

const health = (node: FillingNode) => askJson<HealthBody>(node.port, "/health");

/** Waits until the node reports the full disk, leaves it full for a while, frees it and waits for recovery. */
async function recover(node: FillingNode): Promise<HealthBody> {
  await until(async () => (await health(node)).status === "failing");
  await sleep(fullForMs);
  const full = await health(node);
  await node.free();
  await until(async () => (await health(node)).status !== "failing");
  return full;
}

const noWrites = "The database accepts no writes (SQLITE_FULL).";

testMounted(
  "reports a full disk as failing, serves reads, loses nothing, and recovers once space is freed",
  async (t) => {
    const node = await startOnSmallDisk(t);
    await node.submit(100);
    await node.included();
    await node.fill();
    // No transaction is pending, so only the node's own write attempts detect the recovery. The transaction is larger
    // than the free pages inside the database files.
    t.true(await isRejected(node, 900_000));
    await until(async () => (await health(node)).status === "failing");
    t.is((await ask(node.port, "/storage-program/search?q=p")).status, 200, "reads go on");
    t.true(await isRejected(node, 900_000), "a later submission is rejected for the same reason");
    t.like(await recover(node), {
      status: "failing",
      subsystems: { chain: { status: "failed", lastError: { message: noWrites } } },
    });
    await node.submit();
    t.log(`${await node.included()} acknowledged transactions, all of them in blocks`);
  },
);

testMounted("recovers from a full disk of the block database alone, while the mempool accepts writes", async (t) => {
  const node = await startOnSmallDisk(t, `node.sqlite${mempoolSuffix}`);
  await until(async () => {
    await node.submit();
    return (await health(node)).status === "failing";
  });
  for (let i = 0; i < 5; i++) {
    await node.submit(100);
    t.is((await health(node)).status, "failing", "writes of the mempool do not prove that blocks can be stored");
  }
  t.like((await recover(node)).subsystems.chain, { status: "failed", lastError: { message: noWrites } });
  await node.submit();
  t.log(`${await node.included()} acknowledged transactions, all of them in blocks`);
});

testMounted("recovers from a full disk of the mempool database alone", async (t) => {
  // Less space than the mempool file takes before it reuses its pages.
  const node = await startOnSmallDisk(t, "node.sqlite", 48_700_000);
  await until(() => isRejected(node));
  t.like((await recover(node)).subsystems.chain, { status: "failed", lastError: { message: noWrites } });
  await node.submit();
  t.log(`${await node.included()} acknowledged transactions, all of them in blocks`);
});
