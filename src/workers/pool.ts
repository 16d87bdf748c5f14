/**
 * The processes that serve the public port of a node, as one listener: begun when it binds, replaced when they die or
 * hang, drained together. Each has a queue of connections of its own (SO_REUSEPORT) where Node.js knows how, otherwise
 * all take theirs from one. No connection goes through the node's own process: one that is on its way to a worker that
 * dies would be answered by nobody.
 */
import cluster, { type Worker } from "node:cluster";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { errorMessage } from "../base/errors/error-message.js";
import { StartError } from "../base/errors/start-error.js";
import type { Logger } from "../base/logging/log.js";
import { type ListenAddress, listenOn, type RpcListener } from "../rpc/port/listen.js";
import { openIpcChannel, type IpcHandlers, type IpcChannel, type IpcEnd } from "./ipc.js";

/** What a pool does for workers, beside what their node does. */
export interface PoolSide {
  readonly tells: {
    /** The worker hears what it is sent from now on. */
    up(none: undefined): void;
  };
}

/** What a pool needs of workers: the calls by which it begins and ends them. */
export interface WorkerSide<Start, Booted> extends IpcHandlers {
  readonly calls: IpcHandlers["calls"] & {
    /** Listens from now on. Throws a StartError's sentence as a Failure where it cannot. */
    start(given: { readonly start: Start; readonly address: ListenAddress }): Promise<void>;
    /** Serves everything from now on, as the node has booted. Throws as `start` does. */
    serve(booted: Booted): Promise<void>;
    /** Ends, after it has finished what is under way, for so many milliseconds. */
    drain(graceMs: number): Promise<void>;
  };
}

/** A process that serves. */
export interface PoolWorker<Their extends IpcHandlers> {
  /** From 1 on; the one that takes its place has the same. */
  readonly name: number;
  readonly wire: IpcChannel<Their>;
}

/** How many there are. */
export interface PoolState {
  readonly running: number;
  readonly configured: number;
  /** How many were replaced since the node started. */
  readonly restarts: number;
}

export interface WorkerPoolDeps<Start, Booted, Their extends WorkerSide<Start, Booted>> {
  readonly count: number;
  /** The module that a worker runs. */
  readonly module: URL;
  /** What a worker is given that begins now. */
  readonly start: () => Start;
  /** What a worker is given in addition, at a moment after the node has booted. */
  readonly booted: () => Booted;
  /** What the node does for a worker. */
  readonly sideFor: (self: () => PoolWorker<Their>) => IpcHandlers;
  readonly onJoin: (worker: PoolWorker<Their>) => void;
  readonly onLeave: (worker: PoolWorker<Their>) => void;
  readonly onState: (state: PoolState, problem?: string) => void;
  readonly onInternalError: (error: unknown) => void;
  readonly log: Logger;
}

export interface ProcessPool<Their extends IpcHandlers> extends RpcListener {
  readonly state: () => PoolState;
  /** Those that serve at present. */
  readonly workers: () => readonly PoolWorker<Their>[];
  /**
   * The node has booted: all workers serve everything, those that are begun later, too.
   *
   * @throws StartError when one of them cannot.
   */
  serve(): Promise<void>;
}

/** A worker that was heard of in none of so many looks is replaced. */
const maxSilentLooks = 10;
const lookEveryMs = 1_000;
/** One that dies sooner than this after its begin is replaced only after a pause, which doubles up to the longest. */
const soonMs = 10_000;
const pausesMs = { first: 100, longest: 10_000 };
/** How long workers may take to end by themselves, beyond the time that they have for what is under way. */
const endWithinMs = 2_000;

/** A process, from its begin to its end. */
interface Process<Their extends IpcHandlers> extends PoolWorker<Their> {
  readonly cluster: Worker;
  /** Of the looks since something came from it. */
  silentLooks: number;
  /** It hears what it is sent from now on. */
  readonly up: Promise<void>;
  readonly ended: Promise<string>;
}

export function createProcessPool<Start, Booted, Their extends WorkerSide<Start, Booted>>(
  deps: WorkerPoolDeps<Start, Booted, Their>,
): ProcessPool<Their> {
  const { count, log } = deps;
  const running = new Map<number, Process<Their>>();
  /** Those that do not run yet. */
  const beginning = new Set<Process<Their>>();
  let hasBooted = false;
  let restarts = 0;
  let isEnding = false;
  let address: ListenAddress | undefined;
  const looks = setInterval(killSilent, lookEveryMs).unref();

  const state = (): PoolState => ({ running: running.size, configured: count, restarts });

  function killSilent(): void {
    for (const one of running.values()) {
      if (++one.silentLooks > maxSilentLooks) {
        log.error({ subsystem: "rpc", worker: one.name }, `Worker ${one.name} does not answer and is killed`);
        one.cluster.process.kill("SIGKILL");
      }
    }
  }

  /** Has a process begin with something. Ends it where it cannot. */
  async function prepare(one: Process<Their>, call: () => Promise<unknown>): Promise<void> {
    const outcome = await Promise.race([call().then(() => undefined), one.ended]).catch((error: unknown) => {
      one.cluster.process.kill("SIGKILL");
      return errorMessage(error);
    });
    if (outcome !== undefined) {
      throw new StartError(outcome);
    }
  }

  const serve = (one: Process<Their>): Promise<void> =>
    prepare(one, () => one.wire.call("serve", deps.booted() as never));

  /** Begins a process, and resolves when it serves. */
  async function begin(name: number): Promise<Process<Their>> {
    const one = fork(name, deps);
    const startsFrom = performance.now();
    beginning.add(one);
    try {
      await prepare(one, async () => {
        await one.up;
        await one.wire.call("start", { start: deps.start(), address: address! } as never);
      });
      if (hasBooted) {
        await serve(one);
      }
    } finally {
      beginning.delete(one);
    }
    running.set(name, one);
    deps.onJoin(one);
    deps.onState(state());
    void one.ended.then((why) => onEnd(one, why, performance.now() - startsFrom));
    return one;
  }

  function onEnd(one: Process<Their>, why: string, livedMs: number): void {
    running.delete(one.name);
    one.wire.cut();
    deps.onLeave(one);
    if (!isEnding) {
      const problem = `Worker ${one.name} ended (${why}) and is replaced.`;
      log.error({ subsystem: "rpc", worker: one.name }, problem);
      restarts++;
      deps.onState(state(), problem);
      void replace(one.name, livedMs < soonMs ? pausesMs.first : 0);
    }
  }

  async function replace(name: number, pauseMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
    if (isEnding) {
      return;
    }
    try {
      await begin(name);
    } catch (error) {
      log.error({ subsystem: "rpc", worker: name }, `Worker ${name} could not be replaced: ${errorMessage(error)}`);
      await replace(name, Math.min(pausesMs.longest, Math.max(pausesMs.first, 2 * pauseMs)));
    }
  }

  return {
    state,
    workers: () => [...running.values()],
    async listen(asked) {
      if (!cluster.isPrimary) {
        throw new StartError("Workers need a process that is no worker of a cluster itself; leave out --workers.");
      }
      const port = await findPort(asked);
      address = "path" in asked ? asked : { ...asked, port, reusePort: process.platform === "linux" };
      const begun = await Promise.allSettled(Array.from({ length: count }, (_, i) => begin(i + 1)));
      const failed = begun.find((one) => one.status === "rejected");
      if (failed !== undefined) {
        isEnding = true;
        running.forEach((one) => one.cluster.process.kill("SIGKILL"));
        throw failed.reason;
      }
      return port;
    },
    async serve() {
      hasBooted = true;
      await Promise.all([...running.values()].map(serve));
    },
    async drain(graceMs) {
      isEnding = true;
      clearInterval(looks);
      beginning.forEach((one) => one.cluster.process.kill("SIGKILL"));
      await Promise.all([...running.values()].map((one) => end(one, graceMs)));
    },
  };
}

/** Ends a process, by force where it does not end by itself. */
async function end<Start, Booted>(one: Process<WorkerSide<Start, Booted>>, graceMs: number): Promise<void> {
  const late = setTimeout(() => one.cluster.process.kill("SIGKILL"), graceMs + endWithinMs);
  one.wire.call("drain", graceMs).catch(() => undefined);
  await one.ended;
  clearTimeout(late);
}

/** Begins a process and opens the wire to it. */
function fork<Start, Booted, Their extends WorkerSide<Start, Booted>>(
  name: number,
  { module, sideFor, onInternalError }: WorkerPoolDeps<Start, Booted, Their>,
): Process<Their> {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: fileURLToPath(module), args: [], serialization: "advanced" });
  const forked = cluster.fork();
  const ended = new Promise<string>((resolve) => {
    forked.once("exit", (code, signal) => resolve((signal as string | null) ?? `code ${code}`));
    // It could not be begun, or told something: then it is of no use.
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
        one.silentLooks = 0;
        listener(message);
      }),
  };
  let hears: () => void = () => undefined;
  const up = new Promise<void>((resolve) => (hears = resolve));
  const side = sideFor(() => one);
  const wire = openIpcChannel<Their>(end, { ...side, tells: { ...side.tells, up: hears } }, onInternalError);
  const one: Process<Their> = { name, wire, cluster: forked, silentLooks: 0, up, ended };
  return one;
}

/** A port that is free at this moment: whoever shares it by the kernel would not hear that somebody else has it. */
async function findPort(asked: ListenAddress): Promise<number> {
  const server = createServer();
  const port = await listenOn(server, asked);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
