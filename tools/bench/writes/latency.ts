/** Measures the time from the acknowledgment of a sole sender's transaction until its block is reported. */
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createPublic, signTransaction, submission } from "../../../test/helpers/chain/transactions.js";
import { ask } from "../../../test/helpers/wire/plain-client.js";
import { authority, makeHome } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { startGatehouse } from "../servers/server-process.js";
import { latencyFigures } from "../statistics.js";

/** Pause in milliseconds that a node makes after each attempt to build a block. */
const intervalMs = 250;
const count = 200;

/** Sends each transaction as soon as the block of the previous one is reported, and at random times. */
export async function benchLatency({ directory, say }: BenchSettings): Promise<Row[]> {
  const { flags } = await makeHome(join(directory, "latency"));
  const node = await startGatehouse([...flags, "--sender-programs-per-minute", "0", "--sender-bytes-per-minute", "0"]);
  try {
    const reported = await watch(node.port);
    let nonce = 0;
    const rows: Row[] = [];
    for (const [name, pauseMs] of [
      ["one sender, after each block", () => 0],
      ["one sender, at random times", () => Math.random() * intervalMs],
    ] as const) {
      say(name);
      const waits: number[] = [];
      for (let i = 0; i < count; i++) {
        await sleep(pauseMs());
        nonce++;
        const block = reported(nonce);
        const { status } = await ask(
          node.port,
          "/chain/transactions",
          submission(signTransaction(authority, nonce, createPublic(`program ${nonce}`, `{"n":${nonce}}`))),
        );
        if (status !== 200) {
          throw new Error(`The node rejected a transaction with ${status}.`);
        }
        const acknowledgedMs = performance.now();
        waits.push((await block) - acknowledgedMs);
      }
      waits.sort((a, b) => a - b);
      const [p50] = Object.values(latencyFigures(waits));
      rows.push({ name, figures: { ...latencyFigures(waits), "p50 ms over the interval": p50! - intervalMs } });
    }
    return rows;
  } finally {
    await node.stop();
  }
}

/** Watches transactions. The result returns the time at which the one with this nonce is reported in a block. */
async function watch(port: number): Promise<(nonce: number) => Promise<number>> {
  const waiting = new Map<number, (atMs: number) => void>();
  const path = "/events?kinds=transaction";
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, headers: { accept: "application/jsonl" }, agent: false }, resolve).on(
      "error",
      reject,
    );
  });
  response.on("error", () => undefined);
  response.on("data", (piece: Buffer) => {
    const atMs = performance.now();
    for (const [, nonce] of piece.toString().matchAll(/"nonce":(\d+)/g)) {
      waiting.get(Number(nonce))?.(atMs);
    }
  });
  return (nonce) => new Promise((resolve) => waiting.set(nonce, resolve));
}
