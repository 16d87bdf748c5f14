/** The module that a worker runs: it waits for its node to say what to serve, and ends with it. */
import type { PoolSide } from "../workers/pool.js";
import { openIpcChannel } from "../workers/ipc.js";
import { errorMessage } from "../base/errors/error-message.js";
import { RpcError } from "../rpc/errors.js";
import { type RunningWorker, startWorker } from "./worker.js";
import type { NodeSide, WorkerSide } from "./serving/worker-sides.js";

// The terminal sends these to every process of the node, which itself says when its workers have to end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => undefined);
}
// Without its node it is nothing.
process.on("disconnect", () => process.exit(1));

let running: RunningWorker | undefined;
/** What comes before it serves is of no use. */
const tell = <N extends keyof WorkerSide["tells"]>(name: N): WorkerSide["tells"][N] =>
  ((told: never) => running?.side[name](told)) as WorkerSide["tells"][N];

/** Fails with a sentence for the operator: nobody else hears of it. */
async function inSentences(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new RpcError("INTERNAL_ERROR", errorMessage(error));
  }
}

const side: WorkerSide = {
  calls: {
    start: ({ start, address }) =>
      inSentences(async () => {
        running = await startWorker(start, address, wire);
      }),
    serve: (booted) => inSentences(() => running!.side.serve(booted)),
    async drain(graceMs) {
      await running?.side.drain(graceMs);
      process.exit(0);
    },
    edgeStats: () => running!.side.edgeStats(undefined),
    requests: async () => (await running?.side.requests(undefined)) ?? [],
  },
  streams: {},
  tells: {
    usage: tell("usage"),
    block: tell("block"),
    headStated: tell("headStated"),
    rejected: tell("rejected"),
    historyTaken: tell("historyTaken"),
    reload: tell("reload"),
  },
};

const wire = openIpcChannel<NodeSide & PoolSide>(
  {
    send: (message) => process.connected && process.send!(message, undefined, undefined, () => undefined),
    onMessage: (listener) => void process.on("message", listener),
  },
  side,
  (error) => wire.tell("log", { level: "error", fields: {}, message: errorMessage(error) }),
);
wire.tell("up", undefined);
