/** Asks each node for /health again and again, in a thread of its own: the load must not hold up the clock. */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** One answer of /health. */
export interface Probe {
  readonly node: number;
  /** Milliseconds since the epoch when it was asked. */
  readonly atMs: number;
  readonly latencyMs: number;
  /** What it said: its status and its HTTP status, or why there is no answer. */
  readonly said: string;
}

/** Probers of all nodes. */
export interface Prober {
  readonly probes: readonly Probe[];
  stop(): Promise<void>;
}

interface Task {
  readonly ports: readonly number[];
}

const everyMs = 50;
const patienceMs = 5_000;

/** Starts them. */
export function startProber(ports: readonly number[]): Prober {
  const worker = new Worker(new URL(import.meta.url), { workerData: { ports } satisfies Task });
  const probes: Probe[] = [];
  worker.on("message", (some: Probe[]) => probes.push(...some));
  return {
    probes,
    stop: async () => void (await worker.terminate()),
  };
}

if (!isMainThread) {
  const { ports } = workerData as Task;
  let some: Probe[] = [];
  setInterval(() => {
    parentPort!.postMessage(some);
    some = [];
  }, 500);
  await Promise.all(
    ports.map(async (port, node) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const [atMs, start] = [Date.now(), performance.now()];
        const said = await ask(port, agent).catch((error: unknown) => `no answer (${codeOf(error)})`);
        some.push({ node, atMs, latencyMs: performance.now() - start, said });
        await sleep(everyMs);
      }
    }),
  );
}

function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}

function ask(port: number, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: "/health", agent, timeout: patienceMs };
    const asked = request(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.once("error", reject);
      response.once("end", () => {
        const { status, accepting } = JSON.parse(text) as { status: string; accepting: boolean };
        resolve(`${status}${accepting ? "" : ", not accepting"} (${response.statusCode})`);
      });
    });
    asked.once("timeout", () => asked.destroy(new Error(`none within ${patienceMs / 1000} s`)));
    asked.once("error", reject);
    asked.end();
  });
}
