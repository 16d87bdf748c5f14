/** A node with little memory that is handed large documents, and is started again with all that waits. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import test from "ava";
import { existsSync } from "node:fs";
import { mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { authorityDirectory } from "../helpers/start-member.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import { testKey } from "../helpers/keys.js";
import { askJson } from "../helpers/plain-client.js";
import { readFailure } from "../helpers/rpc-clients.js";
import { noWord, startNodeProcess } from "../helpers/start-cli.js";
import type { Teardown } from "../helpers/teardown.js";
import { until } from "../helpers/until.js";

const containerBytes = 256 * 1024 * 1024;
const heap = ["env", "NODE_OPTIONS=--max-old-space-size=160"];

/** What stands before a command so that it has little memory: a group of its own where this process may make one. */
async function withLittleMemory(t: Teardown): Promise<string[]> {
  const group = join("/sys/fs/cgroup/memory", `gatehouse-${process.pid}`);
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
