/** A node with little memory that is handed large documents, and is started again with all that waits. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { authorityDirectory } from "../helpers/nodes/start-member.js";
import { createPublic, signTransaction } from "../helpers/chain/transactions.js";
import { testKey } from "../helpers/chain/keys.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { noWord, type RunningCli, startNodeProcess } from "../helpers/nodes/start-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const containerBytes = 256 * 1024 * 1024;
/** What docs/running.md has such a container set. */
const heap = ["env", "NODE_OPTIONS=--max-old-space-size=160", "MALLOC_ARENA_MAX=2"];
let groups = 0;

/** What stands before a command so that it has little memory: a group of its own where this process may make one. */
async function withLittleMemory(t: Teardown): Promise<string[]> {
  const group = join("/sys/fs/cgroup/memory", `gatehouse-${process.pid}-${groups++}`);
  try {
    await mkdir(group);
    await writeFile(join(group, "memory.limit_in_bytes"), String(containerBytes));
  } catch {
    return heap;
  }
  t.teardown(async () => {
    await until(async () => {
      await rmdir(group).catch(() => undefined);
      return !existsSync(group);
    });
  });
  return ["sh", "-c", `echo $$ > ${group}/cgroup.procs && exec "$@"`, "sh", ...heap];
}

const senders = 8;
const document = `[${"0,".repeat(520_000)}0]`;
/** As large, quickly applied, and hard to compress on its way. */
const text = JSON.stringify(randomBytes(750_000).toString("base64"));
const blocksWanted = 10;

const headOf = async ({ port }: RunningCli): Promise<number> =>
  Number((await askJson<{ number: string }>(port, "/chain/head")).number);

/** A machine that has much to do refuses for a while. */
const succeeds = (call: Promise<unknown>): Promise<boolean> =>
  call.then(
    () => true,
    () => false,
  );

/** Makes blocks of three megabytes, and gives how many there are. */
async function makeLargeBlocks(authority: RunningCli): Promise<number> {
  await Promise.all(
    [1, 2, 3].map(async (seed) => {
      const client = createClient(ChainService, createGrpcTransport({ baseUrl: authority.ready.rpc }));
      for (let nonce = 1; nonce <= blocksWanted; nonce++) {
        const transaction = signTransaction(testKey(20 + seed), nonce, createPublic(`p${nonce}`, text));
        await until(() => succeeds(client.submitTransaction({ transaction })));
      }
    }),
  );
  await until(async () => (await askJson<{ mempool_size: number }>(authority.port, "/health")).mempool_size === 0);
  return await headOf(authority);
}

/** Reads all blocks as each interface gives them; refusals are answers. */
async function readBlocks({ ready, port }: RunningCli, head: number): Promise<number> {
  let read = 0;
  const stream = async (): Promise<void> => {
    const baseUrl = ready.rpc;
    const client = createClient(ChainService, createGrpcTransport({ baseUrl, readMaxBytes: 8 * 1024 * 1024 }));
    let next = 1n;
    const readOn = async (): Promise<void> => {
      for await (const { block } of client.listBlocks({ fromNumber: next })) {
        next++;
        read += Number(block !== undefined);
      }
    };
    await until(() => succeeds(readOn()));
  };
  const ask = async (): Promise<void> => {
    for (let number = 1; number <= head; number++) {
      const answer = await fetch(`http://127.0.0.1:${port}/chain/blocks/${number}`);
      await answer.arrayBuffer();
      read += Number(answer.ok);
    }
  };
  const call = async (): Promise<void> => {
    const params = [{ message: "getBlocks", data: { start: 1, limit: 50 }, muid: "1" }];
    const body = JSON.stringify({ method: "nodeCall", params });
    const answer = await fetch(ready.rpc, { method: "POST", headers: { "content-type": "application/json" }, body });
    await answer.arrayBuffer();
  };
  await Promise.all([stream(), stream(), ask(), ask(), call(), call()]);
  return read;
}

test("in 256 MB it takes documents of 1 MiB until they have no room, and goes on after it was killed", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const little = await withLittleMemory(t);
  // Without its operator's word it makes no block yet, so that the mempool fills up.
  const flags = ["--genesis", join(dir, "genesis.json"), noWord];
  const node = await startNodeProcess(t, dir, flags, little);
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  let told = 0;
  const refusals = await Promise.all(
    Array.from({ length: senders }, async (_, i) => {
      for (let nonce = 1; ; nonce++) {
        const transaction = signTransaction(testKey(10 + i), nonce, createPublic(`p${nonce}`, document));
        try {
          await client.submitTransaction({ transaction });
          told++;
        } catch (error) {
          return readFailure(error).reason;
        }
      }
    }),
  );
  t.log(`${told} taken, then ${[...new Set(refusals)].join(", ")}`);
  t.is(node.child.exitCode, null);
  t.is(node.child.signalCode, null, "it is not killed for its memory");
  t.true(told >= 20);
  node.child.kill("SIGKILL");
  await node.ended;

  const again = await startNodeProcess(t, dir, [], little);
  await until(async () => (await askJson<{ mempool_size: number }>(again.port, "/health")).mempool_size === 0);
  t.is(again.child.signalCode, null);
  t.log(little.length > heap.length ? "a group of 256 MB" : "a heap of 160 MB");
});

test("in 256 MB it follows a chain of large blocks, goes on behind it, and gives them to whoever reads", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const genesis = join(dir, "genesis.json");
  const network = ["--allow-private-peers", "--loop-interval", "0.2", "--sender-bytes-per-minute", "0"];
  const authority = await startNodeProcess(t, dir, ["--genesis", genesis, ...network]);
  const head = await makeLargeBlocks(authority);

  const little = await withLittleMemory(t);
  const own = await temporaryDirectory(t);
  await copyFile(genesis, join(own, "genesis.json"));
  await writeFile(
    join(own, "peers.json"),
    JSON.stringify([{ url: `https://127.0.0.1:${authority.ready.ports["omni"]}` }]),
  );
  const flags = ["--genesis", join(own, "genesis.json"), "--peers", join(own, "peers.json"), ...network];
  const joining = await startNodeProcess(t, own, flags, little);
  await until(async () => (await headOf(joining)) > head / 4);
  joining.child.kill("SIGKILL");
  await joining.ended;

  const follower = await startNodeProcess(t, own, flags, little);
  await until(async () => (await headOf(follower)) >= head);
  const read = await readBlocks(follower, head);
  t.true(read >= 2 * head, "each stream gave all of them");
  t.is(follower.child.signalCode, null, "it is not killed for its memory");
  t.is(follower.child.exitCode, null);
  t.log(`${head} blocks, ${read} reads`);
});
