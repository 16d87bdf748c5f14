/** Measures synchronization from a snapshot against applying every block, from the same source. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createBlockStore } from "../../../src/chain/blocks/block-store.js";
import { decodeHeader } from "../../../src/chain/transactions/transaction.js";
import { openForReading } from "../../../src/db/open.js";
import { writeSnapshot } from "../../../src/node/chain/snapshots.js";
import { startProgress } from "../../../src/cli/terminal/progress.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { authority, makeBlocks, makeHome, type OperationOf, programOf, withChain } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";

const blockTransactions = 100;

/** Creates a chain and a snapshot, and synchronizes nodes from it. */
export async function benchSnapshot({ directory, transactions, say }: BenchSettings): Promise<Row[]> {
  const home = join(directory, "snapshot");
  const { dir, flags, url } = await makeHome(join(home, "source"));
  const count = Math.ceil(transactions / blockTransactions);
  const progress = startProgress("blocks", count);
  let made = 0;
  await withChain(url, (chain) =>
    makeBlocks(chain, {
      ...{ count, transactions: blockTransactions, operationOf: operations() },
      onBlock: () => progress.update(++made),
    }),
  );
  progress.end();

  say("making a snapshot");
  const database = await openForReading(url);
  const head = (await createBlockStore(database.read).head())!;
  const begunMs = performance.now();
  const folder = join(dir, "snapshots", "of-the-bench");
  const { signal } = new AbortController();
  await database.withSnapshot((db) => writeSnapshot(db, head, { folder, signal }));
  const madeS = (performance.now() - begunMs) / 1_000;
  await database.close();

  const source = await startGatehouse(flags);
  const peers = [`https://127.0.0.1:${source.omniPort}`];
  const times: Record<string, number> = {};
  try {
    for (const how of ["snapshot", "blocks"]) {
      say(`joining: ${how}`);
      const joiner = await makeHome(join(home, how), { key: testKey(2), peers });
      const node = await startGatehouse([...joiner.flags, "--loop-interval", "0.1", "--sync", how]);
      const sinceMs = performance.now();
      await reaches(node.port, count);
      times[how] = (performance.now() - sinceMs) / 1_000;
      await node.stop();
      const joined = await openForReading(joiner.url);
      const there = await createBlockStore(joined.read).head();
      await joined.close();
      if (decodeHeader(there!.header).stateRoot !== decodeHeader(head.header).stateRoot) {
        throw new Error("The state that was joined is another one.");
      }
    }
  } finally {
    await source.stop();
  }
  const { snapshot = NaN, blocks = NaN } = times;
  return [
    {
      name: `joining, ${(count * blockTransactions).toLocaleString("en")} transactions`,
      baseline: "applying every block",
      ratio: blocks / snapshot,
      figures: { "s from a snapshot": snapshot, "s from blocks": blocks, "s to make the snapshot": madeS },
    },
  ];
}

/** Returns the operation of a transaction: every tenth creates a program, the others change these in rotation. */
function operations(): OperationOf {
  const addresses: string[] = [];
  return (nonce) => {
    if (nonce % 10 === 1) {
      addresses.push(programAddress(authority.publicKey, `program ${nonce}`, BigInt(nonce), ""));
      return programOf(nonce, `{"name":"program ${nonce}","n":0}`);
    }
    const storageAddress = addresses[(nonce * 7_919) % addresses.length]!;
    return { case: "setField", value: { storageAddress, field: "n", value: String(nonce) } };
  };
}

async function reaches(port: number, number: number): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/chain/head`);
    if (response.ok && ((await response.json()) as { number: number }).number >= number) {
      return;
    }
    await sleep(20);
  }
}
