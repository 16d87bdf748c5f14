/** A disk of its own for a node, full and emptied again. Linux alone lets a test make one. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ChainService, TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../src/base/hash.js";
import { authorityDirectory } from "../helpers/start-member.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import { testKey } from "../helpers/keys.js";
import { afterMounting, whyNotMounted } from "../helpers/mounts.js";
import { ask, askJson } from "../helpers/plain-client.js";
import { readFailure } from "../helpers/rpc-clients.js";
import { startNodeProcess } from "../helpers/start-cli.js";
import { until } from "../helpers/until.js";
import { testUnless } from "../helpers/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const testMounted = testUnless(whyNotMounted("mount -t tmpfs tmpfs /mnt"));

testMounted("a full disk shows as failing, loses nothing, and heals when there is room again", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const disk = join(dir, "disk");
  await mkdir(disk);
  const mount = `mount -t tmpfs -o size=48m tmpfs ${disk} && head -c 42000000 /dev/zero > ${disk}/ballast`;
  const flags = ["--genesis", join(dir, "genesis.json"), "--database", `sqlite:${disk}/node.sqlite`];
  const node = await startNodeProcess(t, dir, flags, afterMounting(mount));
  const client = createClient(ChainService, createGrpcTransport({ baseUrl: node.ready.rpc }));
  const document = JSON.stringify({ text: "x".repeat(400_000) });
  const told: string[] = [];
  let nonce = 0;
  const submit = async (): Promise<void> => {
    nonce++;
    const transaction = signTransaction(alice, nonce, createPublic(`p${nonce}`, document));
    await client.submitTransaction({ transaction });
    told.push(sha256(transaction.body));
  };
  await until(async () => {
    try {
      await submit();
      return false;
    } catch (error) {
      return readFailure(error).reason === "DATABASE_UNAVAILABLE";
    }
  });
  await until(async () => (await askJson<{ status: string }>(node.port, "/health")).status === "failing");
  t.is((await ask(node.port, "/storage-program/search?q=p")).status, 200, "reads go on");

  // What the node has mounted is seen by others through its process.
  await rm(`/proc/${node.child.pid}/root${disk}/ballast`);
  await until(async () => (await ask(node.port, "/health")).status === 200);
  await submit();
  for (const hash of told) {
    await until(async () => (await client.getTransaction({ hash })).status === TransactionStatus.INCLUDED);
  }
  t.log(`${told.length} transactions told of, all of them in blocks`);
});
