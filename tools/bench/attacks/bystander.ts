/**
 * Honest client that runs from another address while a node is attacked, in a separate thread. Polls /health over one
 * connection, and the latest block over a new connection each time: an overloaded node accepts the former and rejects
 * the latter. Also submits transactions at intervals, and waits until they are in a block.
 */
import { once } from "node:events";
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import { createPublic, signTransaction, submission } from "../../../test/helpers/chain/transactions.js";
import { ask, type PlainRequest } from "../../../test/helpers/wire/plain-client.js";

/** Results of requests. */
export interface RequestResults {
  /**
   * Latencies of all requests in milliseconds, ascending. Includes failed requests, and polls that a slow one delayed.
   */
  readonly latencies: readonly number[];
  /** Number of responses with status 200. */
  readonly answered: number;
  /** Number of responses with another status. */
  readonly refused: number;
  /** Number of requests without a response within {@link timeoutMs}. */
  readonly failed: number;
}

/** Results of a bystander. */
export interface BystanderResults {
  readonly health: RequestResults;
  readonly head: RequestResults;
  readonly writing: WriteResults;
}

/** Results of the transactions of an honest sender. */
export interface WriteResults {
  /** For each included transaction, the number of blocks from acceptance to inclusion, ascending. */
  readonly blocks: readonly number[];
  /** Number of transactions that were not accepted at once. */
  readonly refused: number;
  /** Number of accepted transactions that were in no block at the end. */
  readonly lost: number;
}

interface Task {
  readonly port: number;
  readonly seconds: number;
  /** Hash of the genesis. */
  readonly network: string;
}

/** Address that no attacker uses. */
const localAddress = "127.0.0.2";
/** Time limit in milliseconds for a response. */
const timeoutMs = 10_000;
const [healthEveryMs, headEveryMs, writeEveryMs, pollEveryMs] = [5, 50, 500, 50];
/** Time limit in milliseconds for the inclusion of a transaction. */
const inclusionMs = 20_000;

/** Runs the bystander for some seconds. */
export async function runBystander(task: Task): Promise<BystanderResults> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const [witness] = (await once(worker, "message")) as [BystanderResults];
  return witness;
}

if (!isMainThread) {
  const task = workerData as Task;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [health, head, writing] = await Promise.all([
    pollRepeatedly(task, "/health", healthEveryMs, agent),
    pollRepeatedly(task, "/chain/head", headEveryMs, false),
    submitRepeatedly(task),
  ]);
  agent.destroy();
  parentPort!.postMessage({ health, head, writing } satisfies BystanderResults);
}

async function pollRepeatedly(
  task: Task,
  path: string,
  everyMs: number,
  agent: Agent | false,
): Promise<RequestResults> {
  const latencies: number[] = [];
  const count = { answered: 0, refused: 0, failed: 0 };
  const end = performance.now() + task.seconds * 1000;
  while (performance.now() < end) {
    const start = performance.now();
    const status = (await call(task.port, path, {}, agent))?.status;
    // Polls that were due during a slow request count with the remaining wait, so that one long wait counts as many.
    for (let waitedMs = performance.now() - start; waitedMs > 0; waitedMs -= everyMs) {
      latencies.push(waitedMs);
    }
    count[status === undefined ? "failed" : status === 200 ? "answered" : "refused"]++;
    await sleep(everyMs);
  }
  return { latencies: latencies.sort((a, b) => a - b), ...count };
}

/** Submits a small program at intervals, and waits until each is in a block. */
async function submitRepeatedly({ port, seconds, network }: Task): Promise<WriteResults> {
  const key = newKey();
  const result = { blocks: [] as number[], refused: 0, lost: 0 };
  const end = performance.now() + seconds * 1000;
  let followed: Promise<void>[] = [];
  for (let nonce = 1; performance.now() < end; nonce++) {
    const transaction = signTransaction(key, nonce, createPublic(`honest ${nonce}`, "{}"), { network });
    const before = await callJson<{ number: number }>(port, "/chain/head");
    if ((await call(port, "/chain/transactions", submission(transaction)))?.status === 200) {
      followed = [...followed, follow(port, sha256(transaction.body), before?.number ?? 0, result)];
    } else {
      result.refused++;
    }
    await sleep(writeEveryMs);
  }
  await Promise.all(followed);
  return { ...result, blocks: result.blocks.sort((a, b) => a - b) };
}

async function follow(
  port: number,
  hash: string,
  before: number,
  result: { blocks: number[]; lost: number },
): Promise<void> {
  const deadlineMs = performance.now() + inclusionMs;
  while (performance.now() < deadlineMs) {
    const path = `/chain/transactions/${hash}`;
    const told = await callJson<{ status: string; blockNumber: number }>(port, path);
    if (told?.status === "included") {
      result.blocks.push(told.blockNumber! - before);
      return;
    }
    await sleep(pollEveryMs);
  }
  result.lost++;
}

/** Sends a request. Returns the response; undefined without one. */
async function call(port: number, path: string, request?: PlainRequest, agent: Agent | false = false) {
  const connection = { localAddress, agent, signal: AbortSignal.timeout(timeoutMs) };
  return await ask(port, path, request, connection).catch(() => undefined);
}

/** Requests JSON. Returns undefined without a response. */
async function callJson<T>(port: number, path: string): Promise<Partial<T> | undefined> {
  const answer = await call(port, path);
  return answer && (JSON.parse(answer.text) as Partial<T>);
}
