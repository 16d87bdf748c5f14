/** What attacks are, and what they are made of. */
import { connect, type Socket } from "node:net";

/** What is attacked. */
export interface Target {
  readonly port: number;
  /** Its port for other nodes. */
  readonly omniPort: number;
  readonly mcpPort: number;
  readonly metricsPort: number;
  readonly dataDir: string;
  readonly genesisHash: string;
  /** Address of a program of nearly 1 MiB that anybody may read; each of the newest 50 blocks holds three as large. */
  readonly program: string;
}

/** What an attack did and saw, by name. */
export type Deeds = Readonly<Record<string, number>>;

/** Something that nobody should do. */
export interface Attack {
  /** Does harm until the signal is aborted. */
  readonly harm: (target: Target, signal: AbortSignal) => Promise<Deeds | undefined>;
  /** Options of the node; it limits no rates without. */
  readonly flags?: readonly string[];
  /** Heap of the node in MiB; what Node.js takes without. */
  readonly heapMiB?: number;
}

/** Attacks by name. */
export type Attacks = Readonly<Record<string, Attack>>;

/** The limit that a node has by default. */
export const limitingRates = ["--rate-limit", "2000"];

/** Loopback addresses of attackers, after each other; other clients come from 127.0.0.2. */
export function attackerAddress(i: number): string {
  return `127.0.0.${10 + (i % 100)}`;
}

/** Connects; what becomes of the connection is nobody's business. */
export function openSocket(port: number, localAddress = "127.0.0.1"): Socket {
  return connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
}

/** So many of them at a time, again and again. */
export async function repeat(count: number, signal: AbortSignal, once: () => Promise<unknown>): Promise<void> {
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await once();
    }
  };
  await Promise.all(Array.from({ length: count }, run));
}

/** Resolves when the attack is over. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
}
