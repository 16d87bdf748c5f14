/**
 * Waits until a network is at rest, and compares its nodes. At rest all nodes have the same head, accept transactions and
 * have none pending.
 */
import { errorMessage } from "../../src/base/errors/error-message.js";
import { restartNode, type Stage } from "./faults/fault.js";
import { type Health, waitUntil } from "./load/client.js";
import type { Load } from "./load/senders.js";
import type { Head } from "./model/history.js";
import type { Sent } from "./model/sent.js";

/** Result of waiting for rest. */
export interface RestResult {
  /** Time in milliseconds until the network was at rest, or until the wait was given up. */
  readonly restMs: number;
  /** Reason if the campaign cannot continue. */
  readonly failure?: string;
}

/** Waits for rest, and compares the nodes. */
export type Rest = () => Promise<RestResult>;

/** Creates the function that waits for rest, up to a time limit. If it is exceeded, restarts all nodes and waits again. */
export function createRest(stage: Stage, load: Load, timeoutMs: number): Rest {
  let compared = 0;
  return async () => {
    await load.pause();
    const startedMs = performance.now();
    const reason = await waitForRest(stage, timeoutMs);
    const restMs = performance.now() - startedMs;
    if (reason !== undefined) {
      stage.model.find("stuck", `Not at rest after ${timeoutMs / 1000} s: ${reason}`);
      await restartAll(stage);
      const secondReason = await waitForRest(stage, timeoutMs);
      if (secondReason !== undefined) {
        return {
          restMs,
          failure: `The network did not come to rest when all nodes were started again, either: ${secondReason}`,
        };
      }
    }
    try {
      await compareAtRest(stage, compared);
      compared = stage.model.included.length;
      return { restMs };
    } catch (error) {
      return { restMs, failure: `A node at rest does not answer: ${errorMessage(error)}` };
    }
  };
}

/** Waits until the network is at rest. Returns undefined if it is; on timeout, the state of all nodes as text. */
async function waitForRest({ network: { nodes }, client }: Stage, withinMs: number): Promise<string | undefined> {
  let observed: readonly { readonly head: Head; readonly health: Health }[] = [];
  let lastError = "";
  const poll = async (): Promise<boolean> => {
    lastError = "";
    try {
      observed = await Promise.all(
        nodes.map(async (node) => ({ health: await client.health(node), head: await client.head(node) })),
      );
    } catch (error) {
      lastError = `; ${errorMessage(error)}`;
      throw error;
    }
    return observed.every(
      ({ head, health: { statusCode, accepting, pending } }) =>
        head.hash === observed[0]!.head.hash && statusCode === 200 && accepting && pending === 0,
    );
  };
  // A node that downloads the full chain may take longer than the limit, as long as its head advances.
  const lowestBlock = (): number =>
    Math.min(...(observed.length === 0 ? [-1] : observed.map(({ head }) => head.number)));
  if (await waitUntil(withinMs, poll, lowestBlock)) {
    return undefined;
  }
  const each = nodes.map(({ name, isRunning }, i) => {
    const { head, health } = observed[i] ?? {};
    const accepting = health?.accepting === true ? "accepting" : "not accepting";
    const state = `block ${head?.number ?? "unknown"}, ${health?.status ?? "unknown"}, ${accepting}`;
    return `${name}${isRunning ? "" : " (not running)"}: ${state}, ${health?.pending ?? "unknown"} waiting`;
  });
  return `${each.join("; ")}${lastError}`;
}

async function restartAll(stage: Stage): Promise<void> {
  for (const node of stage.network.nodes) {
    await node.end("SIGKILL");
    await restartNode(stage, node);
  }
}

/** Limit on the unchanged programs and transactions that are compared at each rest, in addition to the changed ones. */
const maxOldItems = 10;

async function compareAtRest(stage: Stage, compared: number): Promise<void> {
  const {
    network: { nodes },
    model,
    client,
  } = stage;
  const from = model.height + 1;
  await Promise.all(nodes.map((node) => client.blocks(node, from)));
  const newlyIncluded: readonly Sent[] = model.included.slice(compared);
  const changed = newlyIncluded.flatMap(({ change }) => (change.kind === "commit" ? [] : [change.address]));
  const addresses = [...new Set([...changed, ...sampleOf(model.addresses)])];
  const hashes = new Set([...newlyIncluded, ...model.open(), ...sampleOf(model.included)].map(({ hash }) => hash));
  const roots = await Promise.all(
    nodes.map(async (node) => {
      for (const hash of hashes) {
        await client.transactionStatus(node, hash);
      }
      for (const address of addresses) {
        await client.document(node, address);
      }
      return await client.commitmentRoot(node);
    }),
  );
  if (roots.some((root) => root !== roots[0])) {
    model.find("torn", `The roots of the tree differ: ${roots.join(", ")}.`);
  }
  model.judge(Date.now());
}

function sampleOf<T>(all: readonly T[]): T[] {
  const count = Math.min(maxOldItems, all.length);
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!);
}
