/** Senders: each does one thing after the other, mostly at one node, and keeps to its order. */
import { setTimeout as sleep } from "node:timers/promises";
import { createChance } from "../../../test/helpers/wire/hostile-values.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import type { Answer } from "../model/history.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";
import type { CampaignClient } from "./client.js";
import { createOperations, type Prepared } from "./operations.js";

/** The load. */
export interface Load {
  /** Nobody sends any more, until it goes on; resolves when all answers are there. */
  pause(): Promise<void>;
  resume(): void;
  stop(): Promise<void>;
  /** Public keys of the senders. */
  readonly senders: readonly string[];
}

/** What the load needs. */
export interface LoadPlan {
  readonly seed: number;
  readonly rate: number;
  readonly network: string;
  readonly nodes: readonly CampaignNode[];
  readonly model: Model;
  readonly client: CampaignClient;
}

/** Where each of the senders hands in: two hand in everything at two nodes. */
const homes: readonly (readonly number[])[] = [[0], [1], [2], [1], [1, 2], [0, 2]];
/** Keys of senders begin here. */
const firstKey = 100;
/** Pause before the same is handed in again. */
const againAfterMs = 300;

/** Starts it. */
export function startLoad({ seed, rate, network, nodes, model, client }: LoadPlan): Load {
  const state = { isPaused: false, isStopped: false };
  const isWaiting = (): boolean => state.isPaused && !state.isStopped;
  const everyMs = (1_000 * homes.length) / rate;
  let idle = 0;

  async function handIn({ transaction, sent }: Prepared, node: CampaignNode): Promise<Answer> {
    const answered = model.submit(sent, node.index);
    const answer = await client.submit(node, transaction);
    answered(answer);
    return answer;
  }

  /** Hands in at one node until it is answered, or nobody waits for that any more. */
  async function insist(prepared: Prepared, node: CampaignNode, isInsisting: boolean): Promise<Answer> {
    for (;;) {
      const answer = await handIn(prepared, node);
      if (answer === "taken" || answer === "refused" || (answer === "unknown" && !isInsisting) || state.isPaused) {
        return answer;
      }
      await sleep(againAfterMs);
    }
  }

  async function work(home: readonly number[], index: number): Promise<void> {
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
      const isInsisting = chance.below(2) === 0;
      const answers = await Promise.all(home.map((one) => insist(prepared, nodes[one]!, isInsisting)));
      if (!answers.every((answer) => answer === "taken")) {
        // What follows is sent whether this gets in or not.
        operations.startAnew();
      }
      await sleep(everyMs * (0.5 + chance.below(100) / 100));
    }
  }

  const working = Promise.all(homes.map(work));
  return {
    senders: homes.map((_, index) => testKey(firstKey + index).publicKey),
    async pause() {
      state.isPaused = true;
      while (idle < homes.length) {
        await sleep(20);
      }
    },
    resume: () => void (state.isPaused = false),
    async stop() {
      Object.assign(state, { isPaused: true, isStopped: true });
      await working;
    },
  };
}
