/** Measures a node with workers against one without, and against bare servers, one of them on Bun. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { compareBuilds, httpAnswer } from "../load/compare.js";
import { httpLoad, type Load, measureInTurns, type Measurement, newConnectionLoad } from "../load/load.js";
import { usageOfTree, whyNoTree } from "../servers/process-tree.js";
import type { BenchSettings, Row } from "../row.js";
import { type NodeProcess, type ServerProcess, startGatehouse } from "../servers/server-process.js";
import { median } from "../statistics.js";

/** Numbers of workers: two, and one for each processor. */
const workerCounts = [...new Set([2, availableParallelism()])].filter((count) => count > 1);

/** Paths to request. Workers respond to the first ones; the last ones are forwarded to the main process. */
const subjects: readonly { readonly name: string; readonly path: string; readonly load: Load }[] = [
  ...["/version", "/", "/zk/merkle-root", "/health", "/info", "/peerlist"].map((path) => ({
    ...{ name: `GET ${path}`, path },
    load: httpLoad(path),
  })),
  { name: "GET /version, over a new connection each", path: "/version", load: newConnectionLoad("/version") },
];

/** Measures all servers, alternating between them. */
export async function benchWorkers({ flags, directory, rounds, seconds, say }: BenchSettings): Promise<Row[]> {
  if (whyNoTree !== undefined) {
    return [{ name: "workers", figures: {}, note: `skipped: ${whyNoTree}` }];
  }
  const rows: Row[] = [];
  for (const count of workerCounts) {
    const nodes: NodeProcess[] = [];
    try {
      for (const workers of [count, 1]) {
        const dataDir = join(directory, `workers-${count}-${workers}`);
        nodes.push(await startGatehouse([...flags, "--data-dir", dataDir, "--workers", String(workers)]));
      }
      const [after, before] = nodes.map(withTree) as [ServerProcess, ServerProcess];
      for (const { name, path, load } of subjects) {
        say(`${name}, ${count} workers`);
        const answers = { [path]: await httpAnswer(after.port, path) };
        const baselines = [{ kind: "http" as const, answers }];
        const [row] = await compareBuilds({ name, load, baselines }, { after, before }, rounds, seconds);
        const { before: alone, ...withWorkers } = row!;
        rows.push({ ...withWorkers, ...alone!, name: `${name}, in one process (beside ${count} workers)` });
        rows.push({ ...withWorkers, name: `${name}, ${count} workers` });
      }
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  }
  say("Bun");
  return [...rows, await benchBun(rounds, seconds)];
}

/** Counts the CPU time of all processes of a node. */
function withTree(node: NodeProcess): ServerProcess {
  return { ...node, usage: () => usageOfTree(node.pid) };
}

const bunServer = `
const body = JSON.stringify("0.0.0");
const headers = { "Content-Type": "application/json" };
const { port } = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body, { headers }) });
console.log(port);
`;

/** Bun server with a constant response, if Bun is installed: an upper bound from another runtime. */
async function benchBun(rounds: number, seconds: number): Promise<Row> {
  const name = "a constant by Bun";
  const child = spawn("bun", ["-e", bunServer], { stdio: ["ignore", "pipe", "inherit"] });
  const started = await Promise.race([
    once(child.stdout, "data").then(([chunk]) => Number(String(chunk))),
    once(child, "error").then(() => undefined),
  ]).catch(() => undefined);
  if (started === undefined) {
    return { name, figures: {}, note: "skipped: there is no bun on the PATH" };
  }
  try {
    const server: ServerProcess = {
      port: started,
      usage: () => usageOfTree(child.pid!),
      stop: () => Promise.resolve(void child.kill()),
    };
    const load = httpLoad("/version");
    const [measured] = await measureInTurns([{ server, load }], rounds, seconds);
    const middle = (key: keyof Measurement): number => median(measured!.map((one) => one[key]));
    return {
      name,
      figures: { "requests/s": middle("requestsPerSecond"), "cpu µs/request": middle("cpuUsPerRequest") },
    };
  } finally {
    child.kill();
  }
}
