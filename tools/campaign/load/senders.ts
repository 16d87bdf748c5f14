/** Senders, which each submit transactions in order, usually to one node. */
import { setTimeout as sleep } from "node:timers/promises";
import { createChance } from "../../../test/helpers/wire/hostile-values.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import type { SubmitOutcome } from "../model/history.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";
import type { CampaignClient } from "./client.js";
import { createOperations, type Prepared } from "./operations.js";

export type Load = ReturnType<typeof startLoad>;

interface LoadPlan {
  readonly seed: number;
  readonly rate: number;
  readonly network: string;
  readonly nodes: readonly CampaignNode[];
  readonly model: Model;
  readonly client: CampaignClient;
}

/** Nodes of each sender. Two senders submit every transaction to two nodes. */
const senderNodes: readonly (readonly number[])[] = [[0], [1], [2], [1], [1, 2], [0, 2]];
/** Number of the first sender's test key. */
const firstKey = 100;
/** Pause in milliseconds before a transaction is submitted again. */
const retryAfterMs = 300;

export function startLoad({ seed, rate, network, nodes, model, client }: LoadPlan) {
  const state = { isPaused: false, isStopped: false };
  const isWaiting = (): boolean => state.isPaused && !state.isStopped;
  const everyMs = (1_000 * senderNodes.length) / rate;
  let idle = 0;

  async function submitOnce({ transaction, sent }: Prepared, node: CampaignNode): Promise<SubmitOutcome> {
    const recordOutcome = model.submit(sent, node.index);
    const outcome = await client.submit(node, transaction);
    recordOutcome(outcome);
    return outcome;
  }

  /** Submits to one node until the response is final, or the load is paused. */
  async function submitUntilAnswered(
    prepared: Prepared,
    node: CampaignNode,
    retriesUnknown: boolean,
  ): Promise<SubmitOutcome> {
    for (;;) {
      const outcome = await submitOnce(prepared, node);
      if (
        outcome === "taken" ||
        outcome === "refused" ||
        (outcome === "unknown" && !retriesUnknown) ||
        state.isPaused
      ) {
        return outcome;
      }
      await sleep(retryAfterMs);
    }
  }

  async function runSender(nodeIndices: readonly number[], index: number): Promise<void> {
    const key = testKey(firstKey + index);
    const chance = createChance(seed * 1_000 + index);
    const operations = createOperations(createChance(seed * 1_000 + 500 + index), key, network);
    while (!state.isStopped) {
      if (state.isPaused) {
        idle++;
        while (isWaiting()) {
          await sleep(20);
        }
        idle--;
        continue;
      }
      const prepared = operations.next(Date.now());
      const retriesUnknown = chance.below(2) === 0;
      const outcomes = await Promise.all(
        nodeIndices.map((nodeIndex) => submitUntilAnswered(prepared, nodes[nodeIndex]!, retriesUnknown)),
      );
      if (!outcomes.every((outcome) => outcome === "taken")) {
        // The outcome is unknown, so later operations must not depend on this one.
        operations.dropProgram();
      }
      await sleep(everyMs * (0.5 + chance.below(100) / 100));
    }
  }

  const running = Promise.all(senderNodes.map(runSender));
  return {
    /** Public keys of the senders. */
    senders: senderNodes.map((_, index) => testKey(firstKey + index).publicKey),
    /** Pauses all senders. Resolves when all of them have received their responses. */
    async pause() {
      state.isPaused = true;
      while (idle < senderNodes.length) {
        await sleep(20);
      }
    },
    resume: () => void (state.isPaused = false),
    async stop() {
      Object.assign(state, { isPaused: true, isStopped: true });
      await running;
    },
  };
}
