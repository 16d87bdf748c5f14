/** Node with 256 MB of memory that receives large documents and blocks, and restarts with a full mempool. */
import test from "ava";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { authorityDirectory } from "../helpers/nodes/start-node.js";
import { chainClient, newProgram } from "../helpers/chain/submit.js";
import { testKey } from "../helpers/chain/keys.js";
import { askJson } from "../helpers/wire/plain-client.js";
import { readFailure } from "../helpers/wire/rpc-clients.js";
import { noRecover, type RunningCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";

const containerBytes = 256 * 1024 * 1024;
/** Environment that docs/running.md recommends for such a container. */
const heap = ["env", "NODE_OPTIONS=--max-old-space-size=160", "MALLOC_ARENA_MAX=2"];
let groups = 0;

/** Returns the prefix of a command that limits its memory: by a cgroup if this process may create one, else by heap. */
async function limitMemory(t: Teardown): Promise<string[]> {
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
/** Document of the same size that is applied quickly and does not compress well. */
const text = JSON.stringify(randomBytes(750_000).toString("base64"));
const blocksWanted = 10;

const headOf = async ({ port }: RunningCli): Promise<number> =>
  Number((await askJson<{ number: string }>(port, "/chain/head")).number);

/** Returns true if a call succeeds. A busy node rejects calls for a while. */
const succeeds = (call: Promise<unknown>): Promise<boolean> =>
  call.then(
    () => true,
    () => false,
  );

/** Produces blocks of 3 MB. Returns the number of the latest one. */
async function produceLargeBlocks(authority: RunningCli): Promise<number> {
  await Promise.all(
    [1, 2, 3].map(async (seed) => {
      const client = chainClient(authority);
      for (let nonce = 1; nonce <= blocksWanted; nonce++) {
        const transaction = newProgram(testKey(20 + seed), nonce, text);
        await until(() => succeeds(client.submitTransaction({ transaction })));
      }
    }),
  );
  await until(async () => (await askJson<{ mempool_size: number }>(authority.port, "/health")).mempool_size === 0);
  return await headOf(authority);
}

/** Reads all blocks through each interface; tolerates rejections. Returns the number of blocks read. */
async function readBlocks({ ready, port }: RunningCli, head: number): Promise<number> {
  let read = 0;
  const stream = async (): Promise<void> => {
    const client = chainClient({ ready });
    let next = 1n;
    const resume = async (): Promise<void> => {
      for await (const { block } of client.listBlocks({ fromNumber: next })) {
        next++;
        read += Number(block !== undefined);
      }
    };
    await until(() => succeeds(resume()));
  };
  const ask = async (): Promise<void> => {
    for (let number = 1; number <= head; number++) {
      const response = await fetch(`http://127.0.0.1:${port}/chain/blocks/${number}`);
      await response.arrayBuffer();
      read += Number(response.ok);
    }
  };
  const call = async (): Promise<void> => {
    const params = [{ message: "getBlocks", data: { start: 1, limit: 50 }, muid: "1" }];
    const body = JSON.stringify({ method: "nodeCall", params });
    const response = await fetch(ready.rpc, { method: "POST", headers: { "content-type": "application/json" }, body });
    await response.arrayBuffer();
  };
  await Promise.all([stream(), stream(), ask(), ask(), call(), call()]);
  return read;
}

test("in 256 MB, accepts documents of 1 MiB until the mempool is full, and includes them after a kill", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const limited = await limitMemory(t);
  // Without --recover the node produces no blocks yet, so the mempool fills up.
  const flags = ["--genesis", join(dir, "genesis.json"), noRecover];
  const node = await startNodeProcess(t, dir, flags, limited);
  const client = chainClient(node);
  let acknowledged = 0;
  const reasons = await Promise.all(
    Array.from({ length: senders }, async (_, i) => {
      for (let nonce = 1; ; nonce++) {
        const transaction = newProgram(testKey(10 + i), nonce, document);
        try {
          await client.submitTransaction({ transaction });
          acknowledged++;
        } catch (error) {
          return readFailure(error).reason;
        }
      }
    }),
  );
  t.log(`${acknowledged} acknowledged, then ${[...new Set(reasons)].join(", ")}`);
  t.is(node.child.exitCode, null);
  t.is(node.child.signalCode, null, "not killed for lack of memory");
  t.true(acknowledged >= 20);
  node.child.kill("SIGKILL");
  await node.ended;

  const restarted = await startNodeProcess(t, dir, [], limited);
  // A busy machine needs minutes for all blocks, so only the next one has a time limit.
  let left = acknowledged + 1;
  while (left > 0) {
    const before = left;
    await until(async () => {
      left = (await askJson<{ mempool_size: number }>(restarted.port, "/health")).mempool_size ?? before;
      return left < before;
    }, `fewer than ${before} pending transactions`);
  }
  t.is(restarted.child.signalCode, null);
  t.log(limited.length > heap.length ? "a group of 256 MB" : "a heap of 160 MB");
});

test("in 256 MB, follows a chain of large blocks, resumes after a kill, and serves the blocks", async (t) => {
  const dir = await authorityDirectory(t, testKey(1));
  const genesis = join(dir, "genesis.json");
  const network = ["--allow-private-peers", "--loop-interval", "0.2", "--sender-bytes-per-minute", "0"];
  const authority = await startNodeProcess(t, dir, ["--genesis", genesis, ...network]);
  const head = await produceLargeBlocks(authority);

  const limited = await limitMemory(t);
  const own = await temporaryDirectory(t);
  await copyFile(genesis, join(own, "genesis.json"));
  await writeFile(
    join(own, "peers.json"),
    JSON.stringify([{ url: `https://127.0.0.1:${authority.ready.ports["omni"]}` }]),
  );
  const flags = ["--genesis", join(own, "genesis.json"), "--peers", join(own, "peers.json"), ...network];
  const killed = await startNodeProcess(t, own, flags, limited);
  await until(async () => (await headOf(killed)) > head / 4);
  killed.child.kill("SIGKILL");
  await killed.ended;

  const follower = await startNodeProcess(t, own, flags, limited);
  await until(async () => (await headOf(follower)) >= head);
  const read = await readBlocks(follower, head);
  t.true(read >= 2 * head, "each stream returned all blocks");
  t.is(follower.child.signalCode, null, "not killed for lack of memory");
  t.is(follower.child.exitCode, null);
  t.log(`${head} blocks, ${read} reads`);
});
