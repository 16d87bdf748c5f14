/** A disk of its own for a node, full and emptied again. Linux alone lets a test make one. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { appendFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/crypto/hash.js";
import { mempoolSuffix } from "../../src/db/open.js";
import type { HealthBody } from "../helpers/process/health-shape.js";
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { afterMounting, whyNotMounted } from "../helpers/process/mounts.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { type RunningCli, startNodeProcess } from "../helpers/nodes/start-cli.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const testMounted = testUnless(whyNotMounted("mount -t tmpfs tmpfs /mnt"));
/** Longer than the node waits between its tries, and than the database library waits for anything. */
const fullForMs = 7_000;

interface FillingNode extends RunningCli {
  /** Submits another transaction, a large one where nothing else is said. Rejects when it is refused. */
  submit(bytes?: number): Promise<void>;
  /** Leaves no room on its disk. */
  fill(): Promise<void>;
  /** Makes room on its disk. */
  free(): Promise<void>;
  /** Resolves when everything that was told of is in a block; gives how many that are. */
  included(): Promise<number>;
}

/** Starts a node whose database is on a small disk, but for this file of it. */
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
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  // What the node has mounted is seen by others through its process.
  const ballast = `/proc/${node.child.pid}/root${disk}/ballast`;
  const told: string[] = [];
  let nonce = 0;
  return {
    ...node,
    async submit(bytes = 400_000) {
      nonce++;
      const document = JSON.stringify({ text: "x".repeat(bytes) });
      const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, document));
      await client.submitTransaction({ transaction });
      told.push(sha256(transaction.body));
    },
    async fill() {
      for (const block of [1_000_000, 4_096]) {
        while (await hasRoom(ballast, block)) {
          // The next one may have room, too.
        }
      }
    },
    free: () => rm(ballast),
    async included() {
      for (const hash of told) {
        await until(async () => (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED);
      }
      return told.length;
    },
  };
}

/** Whether so many bytes more have room at the end of a file. */
async function hasRoom(path: string, bytes: number): Promise<boolean> {
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

async function isRefused(node: FillingNode, bytes?: number): Promise<boolean> {
  try {
    await node.submit(bytes);
    return false;
  } catch (error) {
    const { reason } = readFailure(error);
    return reason === "DATABASE_UNAVAILABLE";
  }
}

const health = (node: FillingNode) => askJson<HealthBody>(node.port, "/health");

/** Waits until a disk is full, and for longer than any try takes; then makes room. */
async function staysFullThenHeals(node: FillingNode): Promise<HealthBody> {
  await until(async () => (await health(node)).status === "failing");
  await sleep(fullForMs);
  const full = await health(node);
  await node.free();
  await until(async () => (await health(node)).status !== "failing");
  return full;
}

const noWrites = "The database accepts no writes (SQLITE_FULL).";

testMounted("a full disk shows as failing, loses nothing, and heals when there is room again", async (t) => {
  const node = await startOnSmallDisk(t);
  await node.submit(100);
  await node.included();
  await node.fill();
  // Nothing waits for a block: nobody but the node's own tries finds out when there is room again. It is larger than what
  // the files have room for in themselves.
  t.true(await isRefused(node, 900_000));
  await until(async () => (await health(node)).status === "failing");
  t.is((await ask(node.port, "/storage-program/search?q=p")).status, 200, "reads go on");
  t.true(await isRefused(node, 900_000), "what is refused again is refused for the same reason");
  t.like(await staysFullThenHeals(node), {
    status: "failing",
    subsystems: { chain: { status: "failed", lastError: { message: noWrites } } },
  });
  await node.submit();
  t.log(`${await node.included()} transactions told of, all of them in blocks`);
});

testMounted("a disk that is full for blocks alone heals", async (t) => {
  const node = await startOnSmallDisk(t, `node.sqlite${mempoolSuffix}`);
  await until(async () => {
    await node.submit();
    return (await health(node)).status === "failing";
  });
  for (let i = 0; i < 5; i++) {
    await node.submit(100);
    t.is((await health(node)).status, "failing", "that transactions are taken says nothing of blocks");
  }
  t.like((await staysFullThenHeals(node)).subsystems.chain, { status: "failed", lastError: { message: noWrites } });
  await node.submit();
  t.log(`${await node.included()} transactions told of, all of them in blocks`);
});

testMounted("a disk that is full for what waits alone heals", async (t) => {
  // Less room than what the file of the mempool grows to before its pages are used again.
  const node = await startOnSmallDisk(t, "node.sqlite", 48_700_000);
  await until(() => isRefused(node));
  t.like((await staysFullThenHeals(node)).subsystems.chain, { status: "failed", lastError: { message: noWrites } });
  await node.submit();
  t.log(`${await node.included()} transactions told of, all of them in blocks`);
});
