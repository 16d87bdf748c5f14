/**
 * Honest clients that measure a node, in a thread of their own: first the idle node, then the attacked one. They send each
 * request when it is due, also while earlier ones wait, so that a stall counts once for each request that it delays.
 */
import { once } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { newKey } from "../../../test/helpers/chain/keys.js";
import { createPublic, signTransaction, submission } from "../../../test/helpers/chain/transactions.js";
import { attackerAddress } from "./attack.js";
import { createClient, type Outcome, type Send, type SourcedRequest, type Transport } from "./transport.js";
import { bystanders, type Measured, neighbor, orchestrator, type Phase, type ServiceName } from "./verdict.js";

/** Work of the judge. */
export interface JudgeTask {
  readonly port: number;
  readonly transport: Transport;
  /** Hash of the genesis. */
  readonly network: string;
  /** Address of a small public program. */
  readonly smallProgram: string;
}

/** Measurements of one phase. */
export interface PhaseReport {
  readonly services: Phase<ServiceName>;
  /** Lag of the judge's own event loop in milliseconds, p99. Latencies below it are not exact. */
  readonly lagMs: number;
}

/** What became of the accepted transactions of the last phase. */
export interface Inclusion {
  /** For each included transaction, the number of blocks from acceptance to inclusion, ascending. */
  readonly blocks: readonly number[];
  /** Number of accepted transactions that are in no block after a time limit. */
  readonly lost: number;
}

/** Running judge. */
export interface Judge {
  measure(seconds: number): Promise<PhaseReport>;
  findIncluded(): Promise<Inclusion>;
  stop(): Promise<void>;
}

type Order = { readonly seconds: number } | "findIncluded";

/** Service that is measured. */
interface Service {
  readonly everyMs: number;
  /** Returns the request of this number, from 0. */
  readonly next: (i: number) => SourcedRequest;
  readonly onOutcome?: (outcome: Outcome, i: number) => void;
}

/** Accepted transaction. */
interface Accepted {
  readonly hash: string;
  readonly headNumber: number;
}

/** Time limits in milliseconds: of a client, and of an orchestrator, whose usual limit is one second. */
const [timeoutMs, probeTimeoutMs] = [5_000, 1_000];
/** Time limit in milliseconds for the inclusion of a transaction. */
const inclusionMs = 20_000;
const headEveryMs = 250;
/** Intervals in milliseconds of each kind of read, and of submissions. */
const [readEveryMs, submitEveryMs] = [25, 100];
/** Each address stays below the default limits of requests and new programs per minute. */
const [readerAddresses, senderAddresses] = [4, 40];

/** Starts the judge. */
export function startJudge(task: JudgeTask): Judge {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const request = async <T>(order: Order): Promise<T> => {
    const reported = once(worker, "message") as Promise<[T]>;
    worker.postMessage(order);
    const [report] = await reported;
    return report;
  };
  return {
    measure: (seconds) => request<PhaseReport>({ seconds }),
    findIncluded: () => request<Inclusion>("findIncluded"),
    async stop() {
      await worker.terminate();
    },
  };
}

if (!isMainThread) {
  const { measure, findIncluded } = createMeasurement(workerData as JudgeTask);
  parentPort!.on("message", (order: Order) => {
    const report = order === "findIncluded" ? findIncluded() : measure(order.seconds);
    void report.then((value) => parentPort!.postMessage(value));
  });
}

function createMeasurement({ port, transport, network, smallProgram }: JudgeTask) {
  const send = createClient(port, transport);
  let headNumber = 0;
  let accepted: Accepted[] = [];
  let submissions = 0;

  /** Signs before the phase, so that the thread does nothing but send. Each key sends one transaction. */
  const signed = (count: number) =>
    Array.from({ length: count }, () => {
      const name = `honest ${submissions++}`;
      const transaction = signTransaction(newKey(), 1, createPublic(name, "{}"), { network });
      return { hash: sha256(transaction.body), request: submission(transaction) };
    });

  const servicesFor = (seconds: number): Readonly<Record<ServiceName, Service>> => {
    const transactions = signed(Math.ceil((seconds * 1000) / submitEveryMs) + 1);
    return {
      "/livez": { everyMs: readEveryMs, next: () => get("/livez", "127.0.1.1") },
      "/health": { everyMs: readEveryMs, next: () => get("/health", "127.0.1.2", true) },
      "storage read": {
        everyMs: readEveryMs,
        next: (i) => get(`/storage-program/${smallProgram}`, `127.0.1.${10 + (i % readerAddresses)}`, true),
      },
      submission: {
        everyMs: submitEveryMs,
        next: (i) => ({
          ...transactions[i]!.request,
          path: "/chain/transactions",
          localAddress: `127.0.2.${1 + (i % senderAddresses)}`,
          timeoutMs,
        }),
        onOutcome({ status }, i) {
          if (status === 200) {
            accepted.push({ hash: transactions[i]!.hash, headNumber });
          }
        },
      },
      [orchestrator]: {
        everyMs: 1_000,
        next: () => ({ path: "/livez", localAddress: attackerAddress(0), timeoutMs: probeTimeoutMs }),
      },
      [neighbor]: { everyMs: 250, next: () => get("/chain/head", attackerAddress(0)) },
    };
  };

  const measure = async (seconds: number): Promise<PhaseReport> => {
    accepted = [];
    const services = servicesFor(seconds);
    const lag = monitorEventLoopDelay({ resolution: 1 });
    const over = new AbortController();
    const following = followHead(send, over.signal, (number) => (headNumber = number));
    lag.enable();
    const measured = await Promise.all(
      Object.entries(services).map(async ([name, service]) => [name, await measureService(send, service, seconds)]),
    );
    lag.disable();
    over.abort();
    await following;
    return {
      services: Object.fromEntries(measured) as Phase<ServiceName>,
      // The timer of the measurement itself takes a millisecond.
      lagMs: Math.max(0, lag.percentile(99) / 1e6 - 1),
    };
  };
  return { measure, findIncluded: () => waitForBlocks(send, accepted) };
}

function get(path: string, localAddress: string, isKept = false): SourcedRequest {
  return { path, localAddress, timeoutMs, isKept };
}

/** Sends each request when it is due, and waits for all responses. */
async function measureService(send: Send, { everyMs, next, onOutcome }: Service, seconds: number): Promise<Measured> {
  const latencies: number[] = [];
  const others: Record<string, number> = {};
  let limited = 0;
  const sendOne = async (i: number): Promise<void> => {
    const startMs = performance.now();
    const outcome = await send(next(i));
    onOutcome?.(outcome, i);
    if (outcome.status === 200) {
      latencies.push(performance.now() - startMs);
      return;
    }
    const status = outcome.status ?? "no response";
    others[status] = (others[status] ?? 0) + 1;
    limited += outcome.status === 429 && outcome.hasRetryAfter ? 1 : 0;
  };
  const startMs = performance.now();
  const open: Promise<void>[] = [];
  for (let i = 0; i * everyMs < seconds * 1000; i++) {
    await sleep(startMs + i * everyMs - performance.now());
    open.push(sendOne(i));
  }
  await Promise.all(open);
  return { latencies: latencies.sort((a, b) => a - b), sent: open.length, limited, others };
}

async function followHead(send: Send, signal: AbortSignal, onHead: (number: number) => void): Promise<void> {
  while (!signal.aborted) {
    const head = await readJson<{ number: number }>(send, "/chain/head");
    if (head?.number !== undefined) {
      onHead(head.number);
    }
    await sleep(headEveryMs);
  }
}

/** Waits until all accepted transactions are in blocks, within a time limit. */
async function waitForBlocks(send: Send, accepted: readonly Accepted[]): Promise<Inclusion> {
  const deadlineMs = performance.now() + inclusionMs;
  const blocks: number[] = [];
  let lost = 0;
  for (const { hash, headNumber } of accepted) {
    for (;;) {
      const found = await readJson<{ status: string; blockNumber: number }>(send, `/chain/transactions/${hash}`);
      if (found?.status === "included") {
        blocks.push(Math.max(0, found.blockNumber! - headNumber));
        break;
      }
      if (performance.now() > deadlineMs) {
        lost++;
        break;
      }
      await sleep(headEveryMs);
    }
  }
  return { blocks: blocks.sort((a, b) => a - b), lost };
}

let reads = 0;
/** Requests JSON from an address of its own. Returns undefined without a response. */
async function readJson<T>(send: Send, path: string): Promise<Partial<T> | undefined> {
  const { status, body } = await send(get(path, `127.0.3.${1 + (reads++ % 100)}`));
  return status === 200 ? (JSON.parse(body.toString("utf8")) as Partial<T>) : undefined;
}

/** Names of all services, in the order of the output. */
export const serviceNames: readonly ServiceName[] = [...bystanders, orchestrator, neighbor];
