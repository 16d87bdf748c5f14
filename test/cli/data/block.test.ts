import test from "ava";
import { appendFile, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { authorityDirectory, startTestNode } from "../../helpers/nodes/start-node.js";
import { createPublic, signTransaction } from "../../helpers/chain/transactions.js";
import { testKey } from "../../helpers/chain/keys.js";
import { runCli } from "../../helpers/nodes/run-cli.js";
import { until } from "../../helpers/nodes/until.js";

const [authority, alice] = [testKey(1), testKey(2)];

test("block export and import transfer blocks as a file, and resume after earlier or interrupted runs", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const genesis = join(dir, "genesis.json");
  const source = await startTestNode(t, { genesis }, dir);
  const target = await startTestNode(t, { genesis });
  const chain = createClient(ChainService, createGrpcTransport({ baseUrl: source.rpcUrl }));
  const addBlocks = async (from: number, to: number): Promise<void> => {
    for (let nonce = from; nonce <= to; nonce++) {
      await chain.submitTransaction({ transaction: signTransaction(alice, nonce, createPublic(`p${nonce}`, "{}")) });
      await until(async () => (await chain.getHead({})).number === BigInt(nonce));
    }
  };
  const file = join(dir, "blocks");
  const exportTo = (...more: string[]) => runCli(["block", "export", file, "--data-dir", source.dir, ...more]);
  const importFrom = (...more: string[]) => runCli(["block", "import", file, "--data-dir", target.dir, ...more]);

  await addBlocks(1, 3);
  t.is((await exportTo()).stdout, `3 blocks written; ${file} ends with block 3.\n`);
  t.is((await importFrom()).stdout, "3 blocks applied; the node is at block 3.\n");
  const { size } = await stat(file);
  // Simulate an export that was interrupted in the middle of a block.
  await appendFile(file, (await readFile(file)).subarray(0, 40));
  await addBlocks(4, 5);
  const again = await exportTo("--json");
  t.deepEqual(JSON.parse(again.stdout), { exported: 2, number: 5 }, again.stderr);
  t.true((await stat(file)).size > size);
  t.regex(again.stderr, /5 of 5 blocks/);
  t.deepEqual(JSON.parse((await importFrom("--json")).stdout), { imported: 2, number: 5 });
  t.deepEqual(JSON.parse((await importFrom("--json")).stdout), { imported: 0, number: 5 });

  await writeFile(file, "no blocks");
  t.is((await importFrom()).code, 2);
  await target.stop();
  t.is((await importFrom()).code, 3);
});
