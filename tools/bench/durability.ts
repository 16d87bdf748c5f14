/** What it costs that a block, and a transaction that was taken, are on the disk before anybody hears of them. */
import { join } from "node:path";
import { createNodeKey, nodeKeyPath, type NodeKey } from "../../src/base/crypto/node-key.js";
import { programOf, transactionOf, withChain } from "./blocks.js";
import type { OwnNodeBench, Row } from "./row.js";
import { median, ratioOfRounds } from "./statistics.js";

/** What SQLite waits for at each commit: the disk, or nothing until the next checkpoint. */
const modes = ["FULL", "NORMAL"] as const;
type Mode = (typeof modes)[number];

/** What a job is done with. */
interface Hands {
  /** Submits the next transaction. */
  readonly submit: () => Promise<unknown>;
  /** Makes a block of what is pending; says whether anything was. */
  readonly seal: () => Promise<boolean>;
  /** Runs what is measured, of which so many are done. */
  readonly timed: (count: number, work: () => Promise<unknown>) => Promise<void>;
}

/** A piece of work that is repeated. */
type Job = (hands: Hands) => Promise<void>;

/** Submissions between two blocks that are made to empty the mempool. */
const submittedAtOnce = 200;

const jobs: readonly { readonly name: string; readonly unit: string; readonly job: Job }[] = [
  { name: "blocks of one transaction", unit: "blocks/s", job: sealing(1) },
  { name: "blocks of 100 transactions", unit: "blocks/s", job: sealing(100) },
  { name: "submissions, one after the other", unit: "submissions/s", job: submitting(1) },
  { name: "submissions, 50 at a time", unit: "submissions/s", job: submitting(50) },
];

function sealing(transactions: number): Job {
  return async ({ submit, seal, timed }) => {
    await Promise.all(Array.from({ length: transactions }, submit));
    await timed(1, seal);
  };
}

function submitting(atATime: number): Job {
  return async ({ submit, seal, timed }) => {
    await timed(submittedAtOnce, async () => {
      const each = Array.from({ length: atATime }, async () => {
        for (let i = 0; i < submittedAtOnce / atATime; i++) {
          await submit();
        }
      });
      await Promise.all(each);
    });
    while (await seal()) {
      // Until all of them are in a block.
    }
  };
}

/** Measures each job with and without the wait for the disk, in turns. */
export async function benchDurability({ directory, rounds, seconds, say }: OwnNodeBench): Promise<Row[]> {
  const key = await createNodeKey(nodeKeyPath(join(directory, "durability")));
  const rows: Row[] = [];
  for (const { name, unit, job } of jobs) {
    const perS: Record<Mode, number[]> = { FULL: [], NORMAL: [] };
    for (let round = 0; round < rounds; round++) {
      for (const mode of modes) {
        say(`${name}, ${mode}, ${round + 1} of ${rounds}`);
        const file = join(directory, "durability", `${rows.length}-${round}-${mode}.sqlite`);
        perS[mode].push(await measure({ file, key, mode, seconds, job }));
      }
    }
    const [full, normal] = [median(perS.FULL), median(perS.NORMAL)];
    const figures = { [unit]: full, [`${unit} without`]: normal };
    rows.push({ name, baseline: "no wait", ...ratioOfRounds(perS.FULL, perS.NORMAL), figures });
  }
  return rows;
}

interface Measurement {
  readonly file: string;
  readonly key: NodeKey;
  readonly mode: Mode;
  readonly seconds: number;
  readonly job: Job;
}

/** How often the job is done in a second. */
async function measure({ file, key, mode, seconds, job }: Measurement): Promise<number> {
  const genesis = JSON.stringify({ authorities: [key.publicKey] });
  return await withChain(file, genesis, key, async (chain, database) => {
    for (const part of [database, database.mempool]) {
      await part.write.run((sql) => sql.raw(`PRAGMA synchronous = ${mode}`));
    }
    let [nonce, done, spentMs] = [0n, 0, 0];
    const hands: Hands = {
      submit: () => {
        nonce++;
        return chain.submit(transactionOf(key, chain.head()!.genesisHash, nonce, programOf(nonce, `{"n":${nonce}}`)));
      },
      seal: async () => (await chain.produceBlock(key)).block !== undefined,
      async timed(count, work) {
        const startMs = performance.now();
        await work();
        spentMs += performance.now() - startMs;
        done += count;
      },
    };
    while (spentMs < seconds * 1_000) {
      await job(hands);
    }
    return (1_000 * done) / spentMs;
  });
}
