/**
 * Somebody from another address while a node is attacked, in a thread of its own: asks for /health over one connection,
 * again and again, and for the newest block over a new connection each time: the first is let in by a node that has too
 * much to do, the second is not. And hands in a transaction now and then, and looks for the block that holds it.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { sha256 } from "../../src/base/crypto/hash.js";
import { newKey } from "../../test/helpers/chain/keys.js";
import { createPublic, signTransaction } from "../../test/helpers/chain/transactions.js";

/** What became of requests. */
export interface Experience {
  /** Of all of them, also those that failed and those that others kept waiting; in milliseconds, ascending. */
  readonly latencies: readonly number[];
  /** With 200. */
  readonly answered: number;
  /** With another status. */
  readonly refused: number;
  /** Without an answer, or not within {@link patienceMs}. */
  readonly failed: number;
}

/** What somebody saw. */
export interface Witness {
  readonly health: Experience;
  readonly head: Experience;
  readonly writing: Writing;
}

/** What became of an honest sender's transactions. */
export interface Writing {
  /** For each that got into a block, how many blocks were made after it was taken until it was in one, ascending. */
  readonly blocks: readonly number[];
  /** How many were not taken at once. */
  readonly refused: number;
  /** How many were in no block in the end. */
  readonly lost: number;
}

interface Task {
  readonly port: number;
  readonly seconds: number;
  /** Hash of the genesis. */
  readonly network: string;
}

const jsonHeaders = { "Content-Type": "application/json" };
/** Not an attacker's address. */
const localAddress = "127.0.0.2";
/** How long to wait for an answer. */
const patienceMs = 10_000;
const [healthEveryMs, headEveryMs, writeEveryMs, lookEveryMs] = [5, 50, 500, 50];
/** How long a transaction is waited for. */
const inclusionMs = 20_000;

/** Asks for so many seconds. */
export async function standBy(task: Task): Promise<Witness> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const [witness] = (await once(worker, "message")) as [Witness];
  return witness;
}

if (!isMainThread) {
  const task = workerData as Task;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [health, head, writing] = await Promise.all([
    askAgain(task, "/health", healthEveryMs, agent),
    askAgain(task, "/chain/head", headEveryMs, false),
    writeAgain(task),
  ]);
  agent.destroy();
  parentPort!.postMessage({ health, head, writing } satisfies Witness);
}

async function askAgain(task: Task, path: string, everyMs: number, agent: Agent | false): Promise<Experience> {
  const latencies: number[] = [];
  const count = { answered: 0, refused: 0, failed: 0 };
  const end = performance.now() + task.seconds * 1000;
  while (performance.now() < end) {
    const start = performance.now();
    const status = await ask(task.port, path, agent).catch(() => undefined);
    // What would have been asked meanwhile would have waited for the rest of it: a long wait is not one of many short.
    for (let waitedMs = performance.now() - start; waitedMs > 0; waitedMs -= everyMs) {
      latencies.push(waitedMs);
    }
    count[status === undefined ? "failed" : status === 200 ? "answered" : "refused"]++;
    await sleep(everyMs);
  }
  return { latencies: latencies.sort((a, b) => a - b), ...count };
}

/** An honest sender: a small program now and then, each looked for until it is in a block. */
async function writeAgain({ port, seconds, network }: Task): Promise<Writing> {
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
  const giveUp = performance.now() + inclusionMs;
  while (performance.now() < giveUp) {
    const answer = await call(port, `/chain/transactions/${hash}`);
    const { status, blockNumber } = (answer?.json ?? {}) as { status?: string; blockNumber?: number };
    if (status === "included") {
      result.blocks.push(blockNumber! - before);
      return;
    }
    await sleep(lookEveryMs);
  }
  result.lost++;
}

async function headOf(port: number): Promise<number | undefined> {
  return ((await call(port, "/chain/head"))?.json as { number?: number } | undefined)?.number;
}

/** Asks for JSON; undefined when no answer comes. */
async function call(port: number, path: string, body?: string): Promise<{ status: number; json: unknown } | undefined> {
  return await new Promise((resolve) => {
    const signal = AbortSignal.timeout(patienceMs);
    const options = { host: "127.0.0.1", port, path, localAddress, signal };
    request({ ...options, ...(body !== undefined && { method: "POST", headers: jsonHeaders }) }, (response) => {
      void text(response).then(
        (whole) => resolve({ status: response.statusCode ?? 0, json: JSON.parse(whole) as unknown }),
        () => resolve(undefined),
      );
    })
      .once("error", () => resolve(undefined))
      .end(body);
  });
}

async function ask(port: number, path: string, agent: Agent | false): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(patienceMs);
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
