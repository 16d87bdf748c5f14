/** Types of attacks, and functions that they share. */
import { connect, type Socket } from "node:net";
import type { Transport } from "./transport.js";

/** Target of an attack. */
export interface Target {
  readonly port: number;
  /** Port for other nodes. */
  readonly omniPort: number;
  readonly mcpPort: number;
  readonly metricsPort: number;
  readonly dataDir: string;
  readonly genesisHash: string;
  /** Address of a public program of nearly 1 MiB. Each of the latest 50 blocks has three programs of this size. */
  readonly program: string;
  /** Transport of the public port, and the HTTP version of floods that can use both. */
  readonly transport: Transport;
  /** True for the control, which accepts everything and responds to nothing. */
  readonly isControl?: boolean;
}

/** Counts of an attack, by name. */
export type AttackCounts = Readonly<Record<string, number>>;

/** Definition of an attack. */
export interface Attack {
  /** Attacks until the signal is aborted. Returns counts. */
  readonly harm: (target: Target, signal: AbortSignal) => Promise<AttackCounts | undefined>;
  /** Options of the node. Default: no rate limits. */
  readonly flags?: readonly string[];
  /** Transport that the attack needs. Default: that of the variant. */
  readonly transport?: Partial<Transport>;
  /**
   * True if the attack sends prepared bytes over any transport and needs no response. Others are plain, so that a variant
   * with TLS leaves them out, and a control cannot stand in for the node.
   */
  readonly isFlood?: boolean;
  /** Heap limit of the node in MiB. Default: that of Node.js. */
  readonly heapMiB?: number;
}

/** Attacks by name. */
export type Attacks = Readonly<Record<string, Attack>>;

/** Default rate limit of a node. */
export const limitingRates = ["--rate-limit", "2000"];

/** Returns loopback addresses for attackers in rotation. Clients on other addresses use 127.0.1.0 and above. */
export function attackerAddress(i: number): string {
  return `127.0.0.${10 + (i % 100)}`;
}

/** Connects. Ignores errors of the connection. */
export function openSocket(port: number, localAddress = attackerAddress(0)): Socket {
  return connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
}

/** Repeats work in a number of concurrent loops. */
export async function repeat(count: number, signal: AbortSignal, once: () => Promise<unknown>): Promise<void> {
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await once();
    }
  };
  await Promise.all(Array.from({ length: count }, run));
}

/** Resolves when the attack ends. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
}
