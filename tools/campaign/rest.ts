/** A network at rest: how it comes to it, and what is compared then. */
import { errorMessage } from "../../src/base/errors/error-message.js";
import { bringBack, type Stage } from "./faults/fault.js";
import { type Health, holdsWithin } from "./load/client.js";
import type { Load } from "./load/senders.js";
import type { Head } from "./model/history.js";
import type { Sent } from "./model/sent.js";

/** What came of waiting. */
export interface Rested {
  /** How long it took. */
  readonly restMs: number;
  /** Why the campaign cannot go on, where it cannot. */
  readonly whyNot?: string;
}

/** Waits for rest, and compares. */
export type Rest = () => Promise<Rested>;

/** Builds it, for a network that may take so long. */
export function createRest(stage: Stage, load: Load, mostMs: number): Rest {
  let compared = 0;
  return async () => {
    await load.pause();
    const startedMs = performance.now();
    const why = await waitForRest(stage, mostMs);
    const restMs = performance.now() - startedMs;
    if (why !== undefined) {
      stage.model.find("stuck", `Not at rest after ${mostMs / 1000} s: ${why}`);
      await startAllAgain(stage);
      const still = await waitForRest(stage, mostMs);
      if (still !== undefined) {
        return {
          restMs,
          whyNot: `The network did not come to rest when all nodes were started again, either: ${still}`,
        };
      }
    }
    try {
      await compareAtRest(stage, compared);
      compared = stage.model.included.length;
      return { restMs };
    } catch (error) {
      return { restMs, whyNot: `A node at rest does not answer: ${errorMessage(error)}` };
    }
  };
}

/** Waits until all nodes have one head, accept, and have nothing waiting. @returns how it is where that does not come */
async function waitForRest({ network: { nodes }, client }: Stage, withinMs: number): Promise<string | undefined> {
  let seen: readonly { readonly head: Head; readonly health: Health }[] = [];
  let trouble = "";
  const look = async (): Promise<boolean> => {
    trouble = "";
    try {
      seen = await Promise.all(
        nodes.map(async (node) => ({ health: await client.health(node), head: await client.head(node) })),
      );
    } catch (error) {
      trouble = `; ${errorMessage(error)}`;
      throw error;
    }
    return seen.every(
      ({ head, health: { statusCode, accepting, pending } }) =>
        head.hash === seen[0]!.head.hash && statusCode === 200 && accepting && pending === 0,
    );
  };
  // One that joins anew takes as long as the chain is; it may, as long as it goes on.
  const behind = (): number => Math.min(...(seen.length === 0 ? [-1] : seen.map(({ head }) => head.number)));
  if (await holdsWithin(withinMs, look, behind)) {
    return undefined;
  }
  const each = nodes.map(({ name, isRunning }, i) => {
    const { head, health } = seen[i] ?? {};
    const accepting = health?.accepting === true ? "accepting" : "not accepting";
    const how = `block ${head?.number ?? "unknown"}, ${health?.status ?? "unknown"}, ${accepting}`;
    return `${name}${isRunning ? "" : " (not running)"}: ${how}, ${health?.pending ?? "unknown"} waiting`;
  });
  return `${each.join("; ")}${trouble}`;
}

async function startAllAgain(stage: Stage): Promise<void> {
  for (const node of stage.network.nodes) {
    await node.end("SIGKILL");
    await bringBack(stage, node);
  }
}

/** What is compared at each rest beside what has changed. */
const oldOnes = 10;

async function compareAtRest(stage: Stage, compared: number): Promise<void> {
  const {
    network: { nodes },
    model,
    client,
  } = stage;
  const from = model.height + 1;
  await Promise.all(nodes.map((node) => client.blocks(node, from)));
  const news: readonly Sent[] = model.included.slice(compared);
  const changed = news.flatMap(({ change }) => (change.kind === "commit" ? [] : [change.address]));
  const addresses = [...new Set([...changed, ...someOf(model.addresses)])];
  const hashes = new Set([...news, ...model.open(), ...someOf(model.included)].map(({ hash }) => hash));
  const roots = await Promise.all(
    nodes.map(async (node) => {
      for (const hash of hashes) {
        await client.fate(node, hash);
      }
      for (const address of addresses) {
        await client.document(node, address);
      }
      return await client.leaves(node);
    }),
  );
  if (roots.some((root) => root !== roots[0])) {
    model.find("torn", `The roots of the tree differ: ${roots.join(", ")}.`);
  }
  model.judge(Date.now());
}

function someOf<T>(all: readonly T[]): T[] {
  const count = Math.min(oldOnes, all.length);
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!);
}
