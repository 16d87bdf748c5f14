/** Simulated power cuts: every block and transaction that the node reported or acknowledged is on disk. */
import test from "ava";
import { randomInt } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { interceptDisks } from "../../../tools/campaign/disk/disk.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { openDatabase } from "../../../src/db/open.js";
import { createChance } from "../../helpers/wire/hostile-values.js";
import { testKey } from "../../helpers/chain/keys.js";
import { headOf } from "../../helpers/nodes/network.js";
import { startCli } from "../../helpers/nodes/run-cli.js";
import { authorityDirectory } from "../../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { areIncluded, chainClient, include, newProgram } from "../../helpers/chain/submit.js";
import { until } from "../../helpers/nodes/until.js";
import { testUnless } from "../../helpers/nodes/when.js";

const [authority, alice] = [testKey(1), testKey(2)];
const directory = mkdtempSync(join(tmpdir(), "gatehouse-disk-"));
const disk = interceptDisks(directory, true);
test.after.always(() => rm(directory, { recursive: true, force: true }));

testUnless(disk.unavailableReason)("a power cut loses no reported block and no acknowledged transaction", async (t) => {
  const dir = await authorityDirectory(t, authority);
  const seed = randomInt(1_000_000);
  t.log(`seed ${seed}`);
  const chance = createChance(seed);
  const env = await disk.environmentOf(dir);
  const included = new Set<string>();
  const acknowledged = new Set<string>();
  let nonce = 0;
  let latest = { number: 0, hash: "" };
  for (let round = 0; round < 3; round++) {
    const ports = ["--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0", "--log-level", "fatal"];
    const args = ["start", "--recover", "--data-dir", dir, "--genesis", join(dir, "genesis.json"), ...ports];
    const node = await startCli(t, args, env);
    const client = chainClient(node);
    if (latest.number > 0) {
      const { block } = await client.getBlock({ number: BigInt(latest.number) }).catch(() => ({ block: undefined }));
      t.is(block && sha256(block.header), latest.hash, "the reported block is stored");
    }
    t.true(await areIncluded(client, ...included));
    await until(() => areIncluded(client, ...acknowledged));
    const enough = latest.number + 4;
    while (latest.number < enough) {
      included.add(await include(client, newProgram(alice, ++nonce)));
      latest = await headOf(node);
    }
    // The power cut follows right after the acknowledgment of a transaction.
    acknowledged.add((await client.submitTransaction({ transaction: newProgram(alice, ++nonce) })).hash);
    node.child.kill("SIGKILL");
    await node.ended;
    await disk.losePower(dir, chance);
  }
  t.true(latest.number >= 12);
  const database = await openDatabase(`sqlite:${join(dir, "gatehouse.sqlite")}`);
  t.teardown(() => database.close());
  const row = await database.read.first<{ number: number }>((sql) => sql("blocks").max({ number: "number" }));
  t.true(row!.number >= latest.number);
});

test("connections that write use synchronous mode FULL", async (t) => {
  const database = await openDatabase(`sqlite:${join(await temporaryDirectory(t), "a.sqlite")}`);
  t.teardown(() => database.close());
  for (const part of [database, database.mempool]) {
    const [row] = await part.write.rows<{ synchronous: number }>((sql) => sql.raw("PRAGMA synchronous"));
    t.is(row?.synchronous, 2, "FULL");
  }
});
