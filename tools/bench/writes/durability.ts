/** Measures the cost of syncing blocks and accepted transactions to disk before they are reported. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { signTransaction } from "../../../test/helpers/chain/transactions.js";
import { authority, programOf, withChain } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { median, ratioOfRounds } from "../statistics.js";

/** Values of SQLite's `synchronous`: FULL syncs at each commit, NORMAL only at checkpoints. */
const modes = ["FULL", "NORMAL"] as const;
type Mode = (typeof modes)[number];

/** Operations that a job uses. */
interface JobOperations {
  /** Submits the next transaction. */
  readonly submit: () => Promise<unknown>;
  /** Produces a block from the pending transactions. Returns false if there are none. */
  readonly produceBlock: () => Promise<boolean>;
  /** Runs and times the measured part, which consists of `count` operations. */
  readonly timed: (count: number, work: () => Promise<unknown>) => Promise<void>;
}

/** Repeated unit of work. */
type Job = (operations: JobOperations) => Promise<void>;

/** Number of submissions between two blocks that empty the mempool. */
const submittedAtOnce = 200;

const jobs: readonly { readonly name: string; readonly unit: string; readonly job: Job }[] = [
  { name: "blocks of one transaction", unit: "blocks/s", job: producing(1) },
  { name: "blocks of 100 transactions", unit: "blocks/s", job: producing(100) },
  { name: "submissions, one after the other", unit: "submissions/s", job: submitting(1) },
  { name: "submissions, 50 at a time", unit: "submissions/s", job: submitting(50) },
];

function producing(transactions: number): Job {
  return async ({ submit, produceBlock, timed }) => {
    await Promise.all(Array.from({ length: transactions }, submit));
    await timed(1, produceBlock);
  };
}

function submitting(atATime: number): Job {
  return async ({ submit, produceBlock, timed }) => {
    await timed(submittedAtOnce, async () => {
      const each = Array.from({ length: atATime }, async () => {
        for (let i = 0; i < submittedAtOnce / atATime; i++) {
          await submit();
        }
      });
      await Promise.all(each);
    });
    while (await produceBlock()) {
      // Repeat until all of them are in a block.
    }
  };
}

/** Measures each job with and without sync, alternately. */
export async function benchDurability({ directory, rounds, seconds, say }: BenchSettings): Promise<Row[]> {
  await mkdir(join(directory, "durability"));
  const rows: Row[] = [];
  for (const { name, unit, job } of jobs) {
    const perS: Record<Mode, number[]> = { FULL: [], NORMAL: [] };
    for (let round = 0; round < rounds; round++) {
      for (const mode of modes) {
        say(`${name}, ${mode}, ${round + 1} of ${rounds}`);
        const file = join(directory, "durability", `${rows.length}-${round}-${mode}.sqlite`);
        perS[mode].push(await measure({ file, mode, seconds, job }));
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
  readonly mode: Mode;
  readonly seconds: number;
  readonly job: Job;
}

/** Returns the number of jobs per second. */
async function measure({ file, mode, seconds, job }: Measurement): Promise<number> {
  return await withChain(`sqlite:${file}`, async (chain, database) => {
    for (const part of [database, database.mempool]) {
      await part.write.run((sql) => sql.raw(`PRAGMA synchronous = ${mode}`));
    }
    let [nonce, done, spentMs] = [0, 0, 0];
    const operations: JobOperations = {
      submit: () => {
        nonce++;
        return chain.submit(signTransaction(authority, nonce, programOf(nonce, `{"n":${nonce}}`)));
      },
      produceBlock: async () => (await chain.produceBlock(authority)).block !== undefined,
      async timed(count, work) {
        const startMs = performance.now();
        await work();
        spentMs += performance.now() - startMs;
        done += count;
      },
    };
    while (spentMs < seconds * 1_000) {
      await job(operations);
    }
    return (1_000 * done) / spentMs;
  });
}
