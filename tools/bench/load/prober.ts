/** Polls /health over one connection, in a separate thread so that the load does not distort the measured latencies. */
import { once } from "node:events";
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { ask } from "../../../test/helpers/wire/plain-client.js";

interface Task {
  readonly port: number;
  readonly seconds: number;
}

const everyMs = 5;

/** Returns the latencies of /health in milliseconds, ascending. Rejects unless every response is 200. */
export async function probeHealth(task: Task): Promise<number[]> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const [latencies] = (await once(worker, "message")) as [number[]];
  return latencies.toSorted((a, b) => a - b);
}

if (!isMainThread) {
  const { port, seconds } = workerData as Task;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const start = performance.now();
    const { status } = await ask(port, "/health", {}, { agent });
    if (status !== 200) {
      throw new Error(`/health was answered with ${status}.`);
    }
    latencies.push(performance.now() - start);
    await sleep(everyMs);
  }
  agent.destroy();
  parentPort!.postMessage(latencies);
}
