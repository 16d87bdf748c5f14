/** Entry module of a worker process: waits for instructions from the node, and exits with the node. */
import type { PoolHandlers } from "../workers/pool.js";
import { openIpcChannel } from "../workers/ipc.js";
import { errorMessage } from "../base/errors/error-message.js";
import { RpcError } from "../rpc/errors.js";
import { type RunningWorker, startWorker } from "./worker.js";
import type { NodeHandlers, WorkerHandlers } from "./serving/workers.js";

// A terminal sends these signals to every process of the node. The node decides when its workers stop.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => undefined);
}
// A worker is useless without its node.
process.on("disconnect", () => process.exit(1));

let running: RunningWorker | undefined;
/**
 * Creates a handler that passes a notification to the worker. Notifications before the worker listens are dropped,
 * because they have no use.
 */
const forwardTo = <N extends keyof WorkerHandlers["notifications"]>(name: N): WorkerHandlers["notifications"][N] =>
  ((value: never) => running?.[name](value)) as WorkerHandlers["notifications"][N];

/**
 * Runs work. Converts an error to an RpcError, because only those keep their message on the way to the node. Only the
 * operator sees that message.
 */
async function withRpcErrors(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new RpcError("INTERNAL_ERROR", errorMessage(error));
  }
}

const handlers: WorkerHandlers = {
  calls: {
    start: ({ start, address }) =>
      withRpcErrors(async () => {
        running = await startWorker(start, address, channel);
      }),
    serve: (booted) => withRpcErrors(() => running!.serve(booted)),
    async drain(graceMs) {
      await running?.drain(graceMs);
      process.exit(0);
    },
    edgeStats: () => running!.edgeStats(undefined),
    requests: async () => (await running?.requests(undefined)) ?? [],
  },
  streams: {},
  notifications: {
    usage: forwardTo("usage"),
    block: forwardTo("block"),
    headStated: forwardTo("headStated"),
    rejected: forwardTo("rejected"),
    historyTaken: forwardTo("historyTaken"),
    reload: forwardTo("reload"),
  },
};

const channel = openIpcChannel<NodeHandlers & PoolHandlers>(
  {
    send: (message) => process.connected && process.send!(message, undefined, undefined, () => undefined),
    onMessage: (listener) => void process.on("message", listener),
  },
  handlers,
  (error) => channel.notify("log", { level: "error", fields: {}, message: errorMessage(error) }),
);
channel.notify("up", undefined);
