/**
 * Somebody from another address while a node is attacked, in a thread of its own: asks for /health over one connection,
 * again and again, and for the newest block over a new connection each time: the first
 * is let in by a node that has too much to do, the second is not.
 */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

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
}

interface Task {
  readonly port: number;
  readonly seconds: number;
}

/** Not an attacker's address. */
const localAddress = "127.0.0.2";
/** How long to wait for an answer. */
const patienceMs = 10_000;
const [healthEveryMs, headEveryMs] = [5, 50];

/** Asks for so many seconds. */
export async function standBy(task: Task): Promise<Witness> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const [witness] = (await once(worker, "message")) as [Witness];
  return witness;
}

if (!isMainThread) {
  const task = workerData as Task;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [health, head] = await Promise.all([
    askAgain(task, "/health", healthEveryMs, agent),
    askAgain(task, "/chain/head", headEveryMs, false),
  ]);
  agent.destroy();
  parentPort!.postMessage({ health, head } satisfies Witness);
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
