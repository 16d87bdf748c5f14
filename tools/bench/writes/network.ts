/** Measures how fast a node follows another one, against applying the same blocks locally; and the cost of a tick. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { sha256 } from "../../../src/base/crypto/hash.js";
import type { Block } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { makeBlocks, makeHome, withChain } from "../blocks.js";
import { askJson } from "../../../test/helpers/wire/plain-client.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";
import { median, ratioOfRounds } from "../statistics.js";

const peerCounts = [1, 100, 1_000];
const tickS = 1;

export async function benchNetwork({ directory, blocks, rounds, seconds, say }: BenchSettings): Promise<Row[]> {
  const home = join(directory, "network");
  const rows: Row[] = [];
  for (const transactions of [1, 50]) {
    rows.push(await benchSync(join(home, String(transactions)), blocks, transactions, rounds, say));
  }
  for (const count of peerCounts) {
    say(`${count} peers`);
    rows.push(await benchTicks(join(home, `peers-${count}`), count, Math.max(10, 5 * seconds)));
  }
  return rows;
}

async function benchSync(
  home: string,
  blockCount: number,
  transactions: number,
  rounds: number,
  say: (what: string) => void,
): Promise<Row> {
  const { flags, url } = await makeHome(join(home, "source"));
  say(`making ${blockCount} blocks of ${transactions}`);
  const blocks: Block[] = [];
  await withChain(url, (chain) =>
    makeBlocks(chain, { count: blockCount, transactions, onBlock: (block) => blocks.push(block) }),
  );
  const source = await startGatehouse(flags);
  const peers = [`https://127.0.0.1:${source.omniPort}`];
  const [applied, followed]: [number[], number[]] = [[], []];
  try {
    for (let round = 0; round < rounds; round++) {
      say(`applying, round ${round + 1}`);
      applied.push(
        await withChain(`sqlite:${join(home, `apply-${round}.sqlite`)}`, async (chain) => {
          const startMs = performance.now();
          for (const block of blocks) {
            await chain.apply(block);
          }
          return blockCount / ((performance.now() - startMs) / 1000);
        }),
      );
      say(`following, round ${round + 1}`);
      const followerHome = await makeHome(join(home, `follow-${round}`), { key: testKey(2), peers });
      const follower = await startGatehouse([...followerHome.flags, "--loop-interval", "1"]);
      followed.push(await timeSync(follower.port, blockCount));
      await follower.stop();
    }
  } finally {
    await source.stop();
  }
  return {
    name: `following, blocks of ${transactions}`,
    baseline: "bare local apply",
    ...ratioOfRounds(followed, applied),
    figures: {
      "blocks/s": median(followed),
      "transactions/s": median(followed) * transactions,
      "bare blocks/s": median(applied),
    },
  };
}

/** Returns the blocks per second between the first poll and the last block. */
async function timeSync(port: number, target: number): Promise<number> {
  let first: { readonly number: number; readonly ms: number } | undefined;
  for (;;) {
    const { number } = await askJson<{ number: number }>(port, "/chain/head");
    const ms = performance.now();
    if (first === undefined && number > 0) {
      first = { number, ms };
    }
    if (number === target && first !== undefined) {
      return (number - first.number) / ((ms - first.ms) / 1000);
    }
    await sleep(10);
  }
}

/** Measures the cost of a tick with peers that respond. */
async function benchTicks(home: string, count: number, seconds: number): Promise<Row> {
  const genesis = JSON.stringify({ name: "bench" });
  const child = fork(fileURLToPath(new URL("../servers/many-peers.js", import.meta.url)), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  child.send({ count, genesisHash: sha256(genesis) });
  const [{ endpoints }] = (await once(child, "message")) as [{ readonly endpoints: string[] }];
  const { flags } = await makeHome(home, { genesis, peers: endpoints });
  const node = await startGatehouse([...flags, "--loop-interval", String(tickS)]);
  try {
    await untilVerified(node.port, count);
    const [before, ticksBefore] = [await node.usage(), await ticksOf(node.port)];
    await sleep(seconds * 1000);
    const [after, ticksAfter] = [await node.usage(), await ticksOf(node.port)];
    const ticks = ticksAfter - ticksBefore;
    return {
      name: `a tick with ${count} peer${count === 1 ? "" : "s"}`,
      figures: {
        "processor ms": (after.cpuUs - before.cpuUs) / 1000 / ticks,
        "of one core %": (after.cpuUs - before.cpuUs) / 10_000 / seconds,
        "memory MiB": after.rssBytes / 1024 ** 2,
      },
    };
  } finally {
    await node.stop();
    child.kill();
  }
}

async function untilVerified(port: number, count: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/peerlist`);
    const peers = (await answer.json()) as readonly { readonly verification: { readonly status: boolean } }[];
    // An overloaded machine rejects requests for some time.
    if (answer.ok && peers.filter(({ verification }) => verification.status).length === count) {
      return;
    }
    await sleep(200);
  }
}

async function ticksOf(port: number): Promise<number> {
  const { main_loop: loop } = await askJson<{ main_loop: { iterations_total: number } }>(port, "/health");
  return loop.iterations_total;
}
