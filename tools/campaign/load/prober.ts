/** Polls /health of each node, in a separate thread so that the load does not distort the measured latencies. */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Response of /health. */
export interface Probe {
  readonly node: number;
  /** Time of the request, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly latencyMs: number;
  /** Health status and HTTP status, or the reason why there is no response. */
  readonly result: string;
}

/** Prober of all nodes. */
export interface Prober {
  readonly probes: readonly Probe[];
  stop(): Promise<void>;
}

interface Task {
  readonly ports: readonly number[];
}

const everyMs = 50;
const timeoutMs = 5_000;

export function startProber(ports: readonly number[]): Prober {
  const worker = new Worker(new URL(import.meta.url), { workerData: { ports } satisfies Task });
  const probes: Probe[] = [];
  worker.on("message", (batch: Probe[]) => probes.push(...batch));
  return {
    probes,
    stop: async () => void (await worker.terminate()),
  };
}

if (!isMainThread) {
  const { ports } = workerData as Task;
  let batch: Probe[] = [];
  setInterval(() => {
    parentPort!.postMessage(batch);
    batch = [];
  }, 500);
  await Promise.all(
    ports.map(async (port, node) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const [atMs, start] = [Date.now(), performance.now()];
        const result = await requestHealth(port, agent).catch((error: unknown) => `no answer (${codeOf(error)})`);
        batch.push({ node, atMs, latencyMs: performance.now() - start, result });
        await sleep(everyMs);
      }
    }),
  );
}

function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

function requestHealth(port: number, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: "/health", agent, timeout: timeoutMs };
    const outgoing = request(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.once("error", reject);
      response.once("end", () => {
        const { status, accepting } = JSON.parse(text) as { status: string; accepting: boolean };
        resolve(`${status}${accepting ? "" : ", not accepting"} (${response.statusCode})`);
      });
    });
    outgoing.once("timeout", () => outgoing.destroy(new Error(`none within ${timeoutMs / 1000} s`)));
    outgoing.once("error", reject);
    outgoing.end();
  });
}
