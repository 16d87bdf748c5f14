/**
 * Measures the cost of notifying many clients of changes: 1,000 streams against 1,000 clients that poll every second.
 */
import { setMaxListeners } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, get, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { programAddress } from "../../src/storage/changes/write.js";
import { genesisOf, testKey, writeKey } from "../../test/helpers/chain/keys.js";
import { createPublic, type Operation, signTransaction } from "../../test/helpers/chain/transactions.js";
import type { NodeBench, Row } from "./row.js";
import { startGatehouse, type ServerProcess } from "./server-process.js";
import { latencyFigures } from "./statistics.js";

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
  /** Called when a client learns of a change, with the value that the change set. */
  readonly onChange: (value: number, atMs: number) => void;
  readonly port: number;
  readonly signal: AbortSignal;
}

/** Measures each kind of client with a separate node. */
export async function benchWatchers({ directory, seconds, say }: NodeBench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, gather] of [
    ["100 changes a second, nobody hears", () => Promise.resolve(0)],
    ["… 1,000 watch one program each", watchAll],
    ["… 1,000 ask for one field each, every second", pollAll],
  ] as const) {
    say(name);
    const home = join(directory, `watchers-${rows.length}`);
    await mkdir(home, { recursive: true });
    const files = { genesis: join(home, "genesis.json"), peers: join(home, "peers.json") };
    await writeFile(files.genesis, genesisOf(testKey(1)));
    await writeFile(files.peers, JSON.stringify([{ url: "https://127.0.0.1:9" }]));
    await writeKey(join(home, "identity.key"), testKey(1));
    const bounds = [
      "--connections-per-address",
      "0",
      "--streams-per-address",
      "0",
      "--sender-programs-per-minute",
      "0",
    ];
    const node = await startGatehouse([
      ...["--data-dir", home, "--genesis", files.genesis, "--peers", files.peers, "--loop-interval", "0.2"],
      ...[...bounds, "--sender-bytes-per-minute", "0"],
    ]);
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
  const write = async (program: number, nonce: number, operation: Operation): Promise<boolean> =>
    await submit(agent, node.port, signTransaction(keyOf(program), nonce, operation));
  try {
    await Promise.all(Array.from({ length: programs }, (_, i) => write(i, 1, createPublic("p", '{"n":0}'))));
    await untilThere(node.port, addressOf(programs - 1));
    const onChange = (value: number, atMs: number): void => {
      const sent = sentMs.get(value);
      if (sent !== undefined) {
        latencies.push(atMs - sent);
      }
    };
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
    return {
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

/** Connects clients that stream the changes of a program. The sender's nonce identifies the value that was set. */
async function watchAll({ onChange, port, signal }: ClientDeps): Promise<number> {
  await Promise.all(
    Array.from({ length: listeners }, async (_, i) => {
      const path = `/events?kinds=transaction&addresses=${addressOf(i % programs)}`;
      const response = await open(port, path, signal);
      await new Promise<void>((resolve) => {
        response.on("data", (piece: Buffer) => {
          const atMs = performance.now();
          for (const [, nonce] of piece.toString().matchAll(/"nonce":(\d+)/g)) {
            onChange(Number(nonce) - 1, atMs);
          }
          resolve();
        });
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
        const text = await ask(agent, port, `/storage-program/${addressOf(i % programs)}/field/n`);
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

function open(port: number, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { accept: "application/jsonl" };
    const sent = get({ host: "127.0.0.1", port, path, headers, agent: false, signal }, (response) => {
      response.on("error", () => undefined);
      resolve(response);
    });
    sent.on("error", reject);
  });
}

function ask(agent: Agent, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent }, (response) => {
      let text = "";
      response.on("data", (piece: Buffer) => (text += piece.toString()));
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

/** Submits a change. Resolves with true if the node accepted it. */
async function submit(
  agent: Agent,
  port: number,
  { body, signature }: { readonly body: Uint8Array; readonly signature: Uint8Array },
): Promise<boolean> {
  const [one, two] = [body, signature].map((bytes) => Buffer.from(bytes).toString("base64"));
  const text = JSON.stringify({ transaction: { body: one, signature: two } });
  return await new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": text.length };
    const sent = request({ host: "127.0.0.1", port, path: "/chain/transactions", method: "POST", headers, agent });
    sent.on("error", reject);
    sent.on("response", (response) => {
      response.resume().on("end", () => {
        const { statusCode } = response;
        if (statusCode === 200 || statusCode === 503) {
          resolve(statusCode === 200);
        } else {
          reject(new Error(`A change was refused with status ${statusCode}.`));
        }
      });
    });
    sent.end(text);
  });
}

async function untilThere(port: number, address: string): Promise<void> {
  const agent = new Agent();
  while (!(await ask(agent, port, `/storage-program/${address}`)).includes('"success":true')) {
    await sleep(50);
  }
}
