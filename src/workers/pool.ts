/**
 * Processes that serve the public port of a node, as one listener. They start when the port is bound, are replaced when
 * they die or hang, and drain together. Where Node.js supports SO_REUSEPORT on Linux, each process has its own queue of
 * connections; elsewhere they share one queue. No connection passes through the node's own process, because a
 * connection in transit to a dying worker would get no response.
 */
import cluster, { type Worker } from "node:cluster";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { errorMessage } from "../base/errors/error-message.js";
import { StartError } from "../base/errors/start-error.js";
import type { Logger } from "../base/logging/log.js";
import { type ListenAddress, listenOn, type RpcListener } from "../rpc/port/listen.js";
import { openIpcChannel, type IpcHandlers, type IpcChannel, type IpcEnd } from "./ipc.js";

/** Handlers of the pool for a worker, besides those of the node. */
export interface PoolHandlers {
  readonly notifications: {
    up(none: undefined): void;
  };
}

/** Calls of workers that a pool needs to start and stop them. */
export interface WorkerHandlers<Start, Booted> extends IpcHandlers {
  readonly calls: IpcHandlers["calls"] & {
    /** Listens on the address. Throws an RpcError with the message of the StartError on failure. */
    start(options: { readonly start: Start; readonly address: ListenAddress }): Promise<void>;
    /** Serves all services, because the node has booted. Throws as `start` does. */
    serve(booted: Booted): Promise<void>;
    /** Finishes requests in progress, for up to `graceMs` milliseconds, and exits. */
    drain(graceMs: number): Promise<void>;
  };
}

export interface PoolWorker<Their extends IpcHandlers> {
  /** Number of the worker, starting at 1. A replacement has the number of the worker that it replaces. */
  readonly name: number;
  readonly channel: IpcChannel<Their>;
}

export interface PoolState {
  readonly running: number;
  readonly configured: number;
  readonly restarts: number;
}

export interface WorkerPoolDeps<Start, Booted, Their extends WorkerHandlers<Start, Booted>> {
  readonly count: number;
  readonly module: URL;
  /** Returns the data for a worker that starts. */
  readonly start: () => Start;
  /** Returns the additional data for a worker, at any time after the node has booted. */
  readonly booted: () => Booted;
  /** Creates the handlers of the node for a worker. */
  readonly handlersFor: (self: () => PoolWorker<Their>) => IpcHandlers;
  readonly onJoin: (worker: PoolWorker<Their>) => void;
  readonly onLeave: (worker: PoolWorker<Their>) => void;
  readonly onState: (state: PoolState, problem?: string) => void;
  readonly onInternalError: (error: unknown) => void;
  readonly log: Logger;
}

export interface ProcessPool<Their extends IpcHandlers> extends RpcListener {
  readonly state: () => PoolState;
  /** Returns the workers that serve at present. */
  readonly workers: () => readonly PoolWorker<Their>[];
  /**
   * Makes all workers serve everything, including those that start later. Called once the node has booted.
   *
   * @throws StartError if one of them cannot.
   */
  serve(): Promise<void>;
}

/** Number of checks without a message from a worker after which the worker is replaced. */
const maxMissedPolls = 10;
const pollIntervalMs = 1_000;
/**
 * Lifetime in milliseconds below which a worker is replaced only after a pause. The pause doubles with each replacement
 * that dies as early or fails to start, up to the longest.
 */
const minLifetimeMs = 10_000;
const pausesMs = { first: 100, longest: 10_000 };
/** Time in milliseconds that workers may take to exit, beyond the time for requests in progress. */
const endWithinMs = 2_000;

/** Worker process from its start to its end. */
interface Process<Their extends IpcHandlers> extends PoolWorker<Their> {
  readonly cluster: Worker;
  /** Number of checks since the last message from the worker. */
  missedPolls: number;
  /** Resolves when the worker is ready to receive messages. */
  readonly up: Promise<void>;
  readonly exited: Promise<string>;
}

export function createProcessPool<Start, Booted, Their extends WorkerHandlers<Start, Booted>>(
  deps: WorkerPoolDeps<Start, Booted, Their>,
): ProcessPool<Their> {
  const { count, log } = deps;
  const running = new Map<number, Process<Their>>();
  const starting = new Set<Process<Their>>();
  /** Latest pause before the replacement of a worker in milliseconds, by number of the worker. */
  const pauses = new Map<number, number>();
  let hasBooted = false;
  let restarts = 0;
  let isStopping = false;
  let address: ListenAddress | undefined;
  const timer = setInterval(killStalled, pollIntervalMs).unref();

  const state = (): PoolState => ({ running: running.size, configured: count, restarts });

  function killStalled(): void {
    for (const worker of running.values()) {
      if (++worker.missedPolls > maxMissedPolls) {
        log.error({ subsystem: "rpc", worker: worker.name }, `Worker ${worker.name} does not respond and is killed`);
        kill(worker);
      }
    }
  }

  /**
   * Waits for a call that prepares a process. Kills the process if the call fails.
   *
   * @throws StartError if the call fails or the process ends.
   */
  async function prepare(worker: Process<Their>, call: () => Promise<unknown>): Promise<void> {
    const outcome = await Promise.race([call().then(() => undefined), worker.exited]).catch((error: unknown) => {
      kill(worker);
      return errorMessage(error);
    });
    if (outcome !== undefined) {
      throw new StartError(outcome);
    }
  }

  const serve = (worker: Process<Their>): Promise<void> =>
    prepare(worker, () => worker.channel.call("serve", deps.booted() as never));

  /** Starts a process, and resolves when it serves. */
  async function startProcess(name: number): Promise<Process<Their>> {
    const worker = fork(name, deps);
    const startedAtMs = performance.now();
    starting.add(worker);
    try {
      await prepare(worker, async () => {
        await worker.up;
        await worker.channel.call("start", { start: deps.start(), address: address! } as never);
      });
      if (hasBooted) {
        await serve(worker);
      }
    } finally {
      starting.delete(worker);
    }
    running.set(name, worker);
    deps.onJoin(worker);
    deps.onState(state());
    void worker.exited.then((reason) => onExit(worker, reason, performance.now() - startedAtMs));
    return worker;
  }

  function onExit(worker: Process<Their>, reason: string, lifetimeMs: number): void {
    running.delete(worker.name);
    worker.channel.close();
    deps.onLeave(worker);
    if (!isStopping) {
      const problem = `Worker ${worker.name} ended (${reason}) and is replaced.`;
      log.error({ subsystem: "rpc", worker: worker.name }, problem);
      restarts++;
      deps.onState(state(), problem);
      void replace(worker.name, lifetimeMs);
    }
  }

  /** Replaces a worker that lived so long; 0 if it did not start. */
  async function replace(name: number, lifetimeMs: number): Promise<void> {
    const doubled = Math.min(pausesMs.longest, Math.max(pausesMs.first, 2 * (pauses.get(name) ?? 0)));
    const pauseMs = lifetimeMs < minLifetimeMs ? doubled : 0;
    pauses.set(name, pauseMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
    if (isStopping) {
      return;
    }
    await startProcess(name).catch(async (error: unknown) => {
      if (!isStopping) {
        log.error({ subsystem: "rpc", worker: name }, `Worker ${name} could not be replaced: ${errorMessage(error)}`);
        await replace(name, 0);
      }
    });
  }

  return {
    state,
    workers: () => [...running.values()],
    async listen(requested) {
      if (!cluster.isPrimary) {
        throw new StartError("--workers needs a process that is not itself a cluster worker; leave --workers out.");
      }
      const port = await findPort(requested);
      address = "path" in requested ? requested : { ...requested, port, reusePort: process.platform === "linux" };
      const started = await Promise.allSettled(Array.from({ length: count }, (_, i) => startProcess(i + 1)));
      const failed = started.find((worker) => worker.status === "rejected");
      if (failed !== undefined) {
        isStopping = true;
        running.forEach(kill);
        throw failed.reason;
      }
      return port;
    },
    async serve() {
      hasBooted = true;
      await Promise.all([...running.values()].map(serve));
    },
    async drain(graceMs) {
      isStopping = true;
      clearInterval(timer);
      starting.forEach(kill);
      await Promise.all([...running.values()].map((worker) => end(worker, graceMs)));
    },
  };
}

const kill = (worker: { readonly cluster: Worker }): void => void worker.cluster.process.kill("SIGKILL");

/** Stops a process, and kills it if it does not exit in time. */
async function end<Start, Booted>(worker: Process<WorkerHandlers<Start, Booted>>, graceMs: number): Promise<void> {
  const killTimer = setTimeout(kill, graceMs + endWithinMs, worker);
  worker.channel.call("drain", graceMs).catch(() => undefined);
  await worker.exited;
  clearTimeout(killTimer);
}

function fork<Start, Booted, Their extends WorkerHandlers<Start, Booted>>(
  name: number,
  { module, handlersFor, onInternalError }: WorkerPoolDeps<Start, Booted, Their>,
): Process<Their> {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: fileURLToPath(module), args: [], serialization: "advanced" });
  const forked = cluster.fork();
  const exited = new Promise<string>((resolve) => {
    forked.once("exit", (code, signal) => resolve((signal as string | null) ?? `code ${code}`));
    // The process could not be started, or a message could not be sent to it. Either way it is useless.
    forked.on("error", (error) => {
      forked.process.kill("SIGKILL");
      resolve(errorMessage(error));
    });
  });
  const end: IpcEnd = {
    send(message) {
      if (forked.isConnected()) {
        forked.send(message as object, () => undefined);
      }
    },
    onMessage: (listener) =>
      void forked.on("message", (message: unknown) => {
        worker.missedPolls = 0;
        listener(message);
      }),
  };
  let onUp: () => void = () => undefined;
  const up = new Promise<void>((resolve) => (onUp = resolve));
  const handlers = handlersFor(() => worker);
  const channel = openIpcChannel<Their>(
    end,
    { ...handlers, notifications: { ...handlers.notifications, up: onUp } },
    onInternalError,
  );
  const worker: Process<Their> = { name, channel, cluster: forked, missedPolls: 0, up, exited };
  return worker;
}

/**
 * Finds a free port, or checks that the requested one is free. Workers share their port through the kernel, which would
 * not report that another process shares it, too.
 *
 * @throws the error of the bind if the port is taken.
 */
async function findPort(requested: ListenAddress): Promise<number> {
  const server = createServer();
  const port = await listenOn(server, requested);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
