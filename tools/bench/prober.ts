/** Polls /health over one connection, in a separate thread so that the load does not distort the measured latencies. */
import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

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
    await ask(port, agent);
    latencies.push(performance.now() - start);
    await sleep(everyMs);
  }
  agent.destroy();
  parentPort!.postMessage(latencies);
}

function ask(port: number, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: "/health", agent }, (response) => {
      response.resume().once("end", () => {
        if (response.statusCode === 200) {
          resolve();
        } else {
          reject(new Error(`/health was answered with ${response.statusCode}.`));
        }
      });
    })
      .once("error", reject)
      .end();
  });
}
