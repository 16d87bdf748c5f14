/**
 * Measures the cost of notifying many clients of changes: 1,000 streams against 1,000 clients that poll every second.
 */
import { once, setMaxListeners } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { programAddress } from "../../../src/storage/changes/write.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { createPublic, type Operation, signTransaction, submission } from "../../../test/helpers/chain/transactions.js";
import { ask } from "../../../test/helpers/wire/plain-client.js";
import { makeHome } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse, type ServerProcess } from "../servers/server-process.js";
import { latencyFigures } from "../statistics.js";

/** Numbers of clients and of programs. Each client follows one program. */
const [listeners, programs] = [1_000, 100];
const changesPerS = 100;
/** Interval in milliseconds between two polls of a client. */
const pollEveryMs = 1_000;
/** Time limit in milliseconds for the last notification. */
const lastMs = 10_000;

const keyOf = (program: number) => testKey(100 + program);
const addressOf = (program: number): string => programAddress(keyOf(program).publicKey, "p", 1n, "");

/** Clients that follow changes. */
interface ClientDeps {
  /** Called when a client learns of a change, with the value that the change set, and its block if the client knows it. */
  readonly onChange: (value: number, atMs: number, block?: number) => void;
  readonly port: number;
  readonly signal: AbortSignal;
}

/** Measures each kind of client with a separate node. */
export async function benchWatchers({ directory, seconds, say }: BenchSettings): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, gather] of [
    ["100 changes a second, nobody hears", () => Promise.resolve(0)],
    ["… 1,000 watch one program each", watchAll],
    ["… 1,000 ask for one field each, every second", pollAll],
  ] as const) {
    say(name);
    const { flags } = await makeHome(join(directory, `watchers-${rows.length}`));
    const unbounded = [
      ...["--connections-per-address", "0", "--streams-per-address", "0"],
      ...["--sender-programs-per-minute", "0", "--sender-bytes-per-minute", "0"],
    ];
    const node = await startGatehouse([...flags, "--loop-interval", "0.2", ...unbounded]);
    try {
      rows.push({ name, figures: await measure(node, gather, seconds) });
    } finally {
      await node.stop();
    }
  }
  return rows;
}

/** @param gather connects the clients. Resolves with the number of clients for each change, once all are connected. */
async function measure(
  node: ServerProcess,
  gather: (audience: ClientDeps) => Promise<number>,
  seconds: number,
): Promise<Record<string, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const controller = new AbortController();
  // Every client listens to the signal.
  setMaxListeners(0, controller.signal);
  const sentMs = new Map<number, number>();
  const latencies: number[] = [];
  const events: { readonly block: number; readonly atMs: number }[] = [];
  const write = async (program: number, nonce: number, operation: Operation): Promise<boolean> =>
    await submit(agent, node.port, signTransaction(keyOf(program), nonce, operation));
  try {
    await Promise.all(Array.from({ length: programs }, (_, i) => write(i, 1, createPublic("p", '{"n":0}'))));
    await untilThere(node.port, addressOf(programs - 1));
    const onChange = (value: number, atMs: number, block?: number): void => {
      const sent = sentMs.get(value);
      if (sent !== undefined) {
        latencies.push(atMs - sent);
        if (block !== undefined) {
          events.push({ block, atMs });
        }
      }
    };
    // The first client to connect is the first to be notified.
    const blockMs = await watchBlocks(node.port, controller.signal);
    const each = await gather({ onChange, port: node.port, signal: controller.signal });
    const before = await node.usage();
    const startMs = performance.now();
    const writes: Promise<unknown>[] = [];
    let refused = 0;
    for (let i = 0; i < seconds * changesPerS; i++) {
      await sleep(Math.max(0, startMs + (i * 1_000) / changesPerS - performance.now()));
      const [program, value] = [i % programs, i + 1];
      sentMs.set(value, performance.now());
      const change = { storageAddress: addressOf(program), field: `n`, value: String(value) };
      const written = write(program, value + 1, { case: "setField", value: change });
      // An overloaded node rejects transactions for a moment; no client expects those changes.
      writes.push(written.then((isTaken) => (isTaken ? undefined : (refused++, sentMs.delete(value)))));
    }
    await Promise.all(writes);
    const wanted = sentMs.size * each;
    const endMs = performance.now() + lastMs;
    while (latencies.length < wanted && performance.now() < endMs) {
      await sleep(20);
    }
    const { cpuUs, rssBytes } = await node.usage();
    latencies.sort((a, b) => a - b);
    const sinceBlock = events.map(({ block, atMs }) => atMs - blockMs.get(block)!).sort((a, b) => a - b);
    return {
      ...(sinceBlock.length > 0 && latencyFigures(sinceBlock, "from the block ")),
      ...(each > 0 && { ...latencyFigures(latencies), "heard %": (100 * latencies.length) / wanted }),
      ...(refused > 0 && { refused }),
      "processor s": (cpuUs - before.cpuUs) / 1e6,
      "processor %": (cpuUs - before.cpuUs) / 1e4 / ((performance.now() - startMs) / 1_000),
      MiB: rssBytes / 2 ** 20,
    };
  } finally {
    controller.abort();
    agent.destroy();
  }
}

/** Connects a client that streams blocks. Returns the time at which it learned of each. */
async function watchBlocks(port: number, signal: AbortSignal): Promise<ReadonlyMap<number, number>> {
  const times = new Map<number, number>();
  await follow(port, "/events?kinds=block", signal, (text, atMs) => {
    for (const [, block] of text.matchAll(/"blockNumber":(\d+)/g)) {
      times.set(Number(block), atMs);
    }
  });
  return times;
}

/** Connects clients that stream the changes of a program. The sender's nonce identifies the value that was set. */
async function watchAll({ onChange, port, signal }: ClientDeps): Promise<number> {
  await Promise.all(
    Array.from({ length: listeners }, async (_, i) => {
      const path = `/events?kinds=transaction&addresses=${addressOf(i % programs)}`;
      await follow(port, path, signal, (text, atMs) => {
        for (const [, block, nonce] of text.matchAll(/"blockNumber":(\d+).*?"nonce":(\d+)/g)) {
          onChange(Number(nonce) - 1, atMs, Number(block));
        }
      });
    }),
  );
  return listeners / programs;
}

/** Connects clients that poll a field of a program. Several changes between two polls count as seen at once. */
function pollAll({ onChange, port, signal }: ClientDeps): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  signal.addEventListener("abort", () => agent.destroy());
  for (let i = 0; i < listeners; i++) {
    let last = 0;
    const poll = async (): Promise<void> => {
      await sleep((pollEveryMs * i) / listeners);
      while (!signal.aborted) {
        const path = `/storage-program/${addressOf(i % programs)}/field/n`;
        const { text } = await ask(port, path, {}, { agent });
        const value = Number(/"value":(\d+)/.exec(text)?.[1] ?? 0);
        // Successive changes of one program are `programs` values apart.
        for (let each = value; each > last && each > 0; each -= programs) {
          onChange(each, performance.now());
        }
        last = Math.max(last, value);
        await sleep(pollEveryMs);
      }
    };
    poll().catch(() => undefined);
  }
  return Promise.resolve(listeners / programs);
}

/** Opens a stream of events. Resolves at its first message, which says that the stream has caught up. */
async function follow(
  port: number,
  path: string,
  signal: AbortSignal,
  onText: (text: string, atMs: number) => void,
): Promise<void> {
  const headers = { accept: "application/jsonl" };
  const sent = get({ host: "127.0.0.1", port, path, headers, agent: false, signal });
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  // The end of the measurement aborts the stream.
  [sent, response].forEach((stream) => stream.on("error", () => undefined));
  await new Promise<void>((resolve) => {
    response.on("data", (piece: Buffer) => {
      onText(piece.toString(), performance.now());
      resolve();
    });
  });
}

/** Submits a change. Resolves with true if the node accepted it. */
async function submit(agent: Agent, port: number, transaction: Transaction): Promise<boolean> {
  const { status } = await ask(port, "/chain/transactions", submission(transaction), { agent });
  if (status !== 200 && status !== 503) {
    throw new Error(`A change was refused with status ${status}.`);
  }
  return status === 200;
}

async function untilThere(port: number, address: string): Promise<void> {
  while (!(await ask(port, `/storage-program/${address}`)).text.includes('"success":true')) {
    await sleep(50);
  }
}
