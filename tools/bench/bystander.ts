/**
 * Honest client that runs from another address while a node is attacked, in a separate thread. Polls /health over one
 * connection, and the latest block over a new connection each time: an overloaded node accepts the former and rejects
 * the latter. Also submits transactions at intervals, and waits until they are in a block.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { sha256 } from "../../src/base/crypto/hash.js";
import { newKey } from "../../test/helpers/chain/keys.js";
import { createPublic, signTransaction } from "../../test/helpers/chain/transactions.js";

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

const jsonHeaders = { "Content-Type": "application/json" };
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
    const status = await requestStatus(task.port, path, agent).catch(() => undefined);
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
    const { body, signature } = signTransaction(key, nonce, createPublic(`honest ${nonce}`, "{}"), { network });
    const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
    const json = JSON.stringify({ transaction: { body: base64(body), signature: base64(signature) } });
    const before = await headOf(port);
    if ((await call(port, "/chain/transactions", json))?.status === 200) {
      followed = [...followed, follow(port, sha256(body), before ?? 0, result)];
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
    const answer = await call(port, `/chain/transactions/${hash}`);
    const { status, blockNumber } = (answer?.json ?? {}) as { status?: string; blockNumber?: number };
    if (status === "included") {
      result.blocks.push(blockNumber! - before);
      return;
    }
    await sleep(pollEveryMs);
  }
  result.lost++;
}

async function headOf(port: number): Promise<number | undefined> {
  return ((await call(port, "/chain/head"))?.json as { number?: number } | undefined)?.number;
}

/** Sends a request. Returns the status and the JSON; undefined without a response. */
async function call(port: number, path: string, body?: string): Promise<{ status: number; json: unknown } | undefined> {
  return await new Promise((resolve) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const options = { host: "127.0.0.1", port, path, localAddress, signal };
    request({ ...options, ...(body !== undefined && { method: "POST", headers: jsonHeaders }) }, (response) => {
      void text(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, json: JSON.parse(body) as unknown }),
        () => resolve(undefined),
      );
    })
      .once("error", () => resolve(undefined))
      .end(body);
  });
}

async function requestStatus(port: number, path: string, agent: Agent | false): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    request({ host: "127.0.0.1", port, path, agent, localAddress, signal }, (response) => {
      response
        .resume()
        .once("end", () => resolve(response.statusCode))
        .once("error", reject);
    })
      .once("error", reject)
      .end();
  });
}
