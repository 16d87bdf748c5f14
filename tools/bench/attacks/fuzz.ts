/**
 * Sends hostile transactions to two nodes, on SQLite and on PostgreSQL, whose chains and states must be equal at the
 * end.
 */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { cannotBeApplied } from "../../../src/chain/writer/block-builder.js";
import { openDatabase } from "../../../src/db/open.js";
import { verificationKeyJson } from "../../../test/helpers/chain/groth16.js";
import {
  createHostileTransactions,
  type HostileTransactions,
} from "../../../test/helpers/chain/hostile-transactions.js";
import { createChance } from "../../../test/helpers/wire/hostile-values.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { startPostgres } from "../../../test/helpers/databases/postgres-server.js";
import { readState } from "../../../test/helpers/chain/state-digest.js";
import { authority, makeHome, silentPeer } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { type NodeProcess, startGatehouse } from "../servers/server-process.js";

/** Number of rounds. Each has a new chain, and the nodes swap their roles. */
const roundCount = 4;
const concurrentSenders = 8;
/** Time limit in milliseconds for a node to include accepted transactions, and for the other to follow. */
const settleMs = 120_000;
const follower = testKey(2);

export async function benchFuzz({
  directory,
  minutes,
  seed = randomInt(1, 2 ** 31),
  say,
}: BenchSettings): Promise<Row[]> {
  const postgres = await startPostgres();
  if (typeof postgres === "string") {
    return [{ name: "fuzz", figures: {}, note: `PostgreSQL does not start: ${postgres}` }];
  }
  const rows: Row[] = [];
  try {
    for (let round = 0; round < roundCount; round++) {
      const roundSeed = seed + round;
      say(`hostile transactions, seed ${roundSeed}`);
      const dir = join(directory, `fuzz-${roundSeed}`);
      const urls = [`sqlite:${join(dir, "a.sqlite")}`, await postgres.createDatabase()] as const;
      rows.push(await runRound({ dir, urls, seed: roundSeed, ms: (minutes * 60_000) / roundCount }));
    }
  } finally {
    await postgres.remove();
  }
  return rows;
}

interface Round {
  readonly dir: string;
  /** Databases: SQLite, PostgreSQL. */
  readonly urls: readonly [string, string];
  readonly seed: number;
  readonly ms: number;
}

async function runRound({ dir, urls, seed, ms }: Round): Promise<Row> {
  const hasProofs = seed % 4 >= 2;
  const zk = hasProofs ? { verificationKey: verificationKeyJson } : undefined;
  const genesis = JSON.stringify({ name: "fuzz", authorities: [authority.publicKey], zk });
  const [first, second] = seed % 2 === 0 ? urls : ([urls[1], urls[0]] as const);
  const start = async (name: string, key: typeof authority, database: string, peer: string): Promise<NodeProcess> => {
    const { flags } = await makeHome(join(dir, name), { key, genesis, peers: [peer] });
    return await startGatehouse([...flags, "--database", database, "--loop-interval", "1"], { hidesLog: true });
  };
  const network = sha256(genesis);
  const hostile = createHostileTransactions({ seed, network, authority, nowMs: Date.now, hasProofs });
  const nodes: NodeProcess[] = [];
  try {
    nodes.push(await start("authority", authority, first, silentPeer));
    nodes.push(await start("follower", follower, second, `https://127.0.0.1:${nodes[0]!.omniPort}`));
    const sent = await send(hostile, nodes, createChance(seed), ms);
    const head = await settle(hostile, nodes);
    await Promise.all(nodes.map((node) => node.stop()));
    const [ours, theirs] = await Promise.all([first, second].map((url) => readDatabase(url, hostile)));
    const difference = ours!.lines.find((line, i) => line !== theirs!.lines[i]);
    const notes = [
      ...sent.faults,
      ...(isDeepStrictEqual(ours, theirs) ? [] : [`The states differ: ${difference?.slice(0, 500) ?? "in length"}`]),
      ...(ours!.unexpected + theirs!.unexpected === 0 ? [] : ["A transaction was rejected for an error of no rule."]),
    ];
    if (notes.length > 0) {
      throw new Error(`Seed ${seed}: ${notes.join(" ")}`);
    }
    const { taken, refused } = sent;
    const logLines = nodes.reduce((sum, node) => sum + node.logLines(), 0);
    return {
      name: `seed ${seed}, authority on ${first.split(":")[0]!}`,
      figures: { taken, refused, blocks: head, "log lines": logLines },
    };
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}

/** Sends transactions to a random node. Each response must be a rejection or a success, not an internal error. */
async function send(
  hostile: HostileTransactions,
  nodes: readonly NodeProcess[],
  chance: ReturnType<typeof createChance>,
  ms: number,
): Promise<{ taken: number; refused: number; faults: readonly string[] }> {
  const clients = nodes.map(clientOf);
  const faults: string[] = [];
  const endMs = performance.now() + ms;
  let [taken, refused] = [0, 0];
  const sendOne = async (transaction: Transaction): Promise<void> => {
    try {
      await chance.pick(clients).submitTransaction({ transaction });
      hostile.learnTaken(transaction);
      taken++;
    } catch (error) {
      refused++;
      const { code, rawMessage } = ConnectError.from(error);
      if (code === Code.Internal || code === Code.Unknown) {
        faults.push(`${rawMessage} for ${Buffer.from(transaction.body).toString("base64").slice(0, 2_000)}.`);
      } else if (code === Code.Unavailable || code === Code.ResourceExhausted) {
        await sleep(1_000);
      }
    }
  };
  const work = async (): Promise<void> => {
    while (performance.now() < endMs && faults.length < 10) {
      await sendOne(hostile.next());
    }
  };
  const watch = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const { rootHash } = await ask<{ rootHash?: string }>(nodes[0]!, "/zk/merkle-root");
      // The node may have been overloaded when it responded.
      if (rootHash !== undefined) {
        hostile.learnRoot(rootHash);
      }
      await sleep(1_000);
    }
  };
  await Promise.all([watch(), ...Array.from({ length: concurrentSenders }, work)]);
  return { taken, refused, faults };
}

/** Waits until an honest transaction is in a block on both nodes, with equal heads. Returns the number of the head. */
async function settle(hostile: HostileTransactions, nodes: readonly NodeProcess[]): Promise<number> {
  const endMs = performance.now() + settleMs;
  const honest = hostile.honest();
  const { hash } = await clientOf(nodes[1]!).submitTransaction({ transaction: honest });
  for (;;) {
    const fates = await Promise.all(
      nodes.map((node) => ask<{ status?: string }>(node, `/chain/transactions/${hash}`).catch(() => ({ status: "" }))),
    );
    const heads = await Promise.all(nodes.map((node) => ask<{ number: number; hash: string }>(node, "/chain/head")));
    const pending = await ask<{ mempool_size: number }>(nodes[0]!, "/health");
    const isIncluded = fates.every(({ status }) => status === "included");
    if (isIncluded && heads[0]!.hash === heads[1]!.hash && pending.mempool_size === 0) {
      return heads[0]!.number;
    }
    if (performance.now() > endMs) {
      const seen = { fates, heads, pending: pending.mempool_size };
      throw new Error(`The chain takes no honest transaction, or the nodes differ: ${JSON.stringify(seen)}`);
    }
    await sleep(500);
  }
}

async function readDatabase(url: string, hostile: HostileTransactions) {
  const database = await openDatabase(url);
  try {
    const lines = await readState(database, hostile);
    const rejected = await database.mempool.read.rows((sql) =>
      sql("rejected_transactions").where({ reason: cannotBeApplied }),
    );
    return { lines, unexpected: rejected.length };
  } finally {
    await database.close();
  }
}

function clientOf({ port }: NodeProcess) {
  return createClient(ChainService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}

/** Opens a new connection, because the node may close an idle one just when it is used. */
async function ask<T>({ port }: NodeProcess, path: string): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { Connection: "close" } });
  return (await answer.json()) as T;
}
