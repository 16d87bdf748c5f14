/** Faults of processes: killed, stopped, frozen, restarted without a database, and with a clock that jumps. */
import { setTimeout as sleep } from "node:timers/promises";
import { emptyDatabase } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import { restartNode, type Fault, inSeconds, type Stage } from "./fault.js";

interface RestartFault extends Pick<Fault, "description"> {
  readonly kind: "kill" | "stop";
  /** Returns the downtimes in milliseconds to choose from; `someMs` is random. */
  readonly downMs: (someMs: number) => readonly number[];
  readonly end: (stage: Stage, node: CampaignNode) => Promise<void>;
}

/** Creates a fault that ends a node and restarts it after some time. */
function createRestartFault({ kind, description, downMs: choose, end }: RestartFault): Fault {
  return {
    description,
    plan(chance) {
      const downMs = chance.pick(choose(chance.below(5_000)));
      return {
        title: `${kind}, restarted after ${inSeconds(downMs)}`,
        async run(stage, node) {
          await end(stage, node);
          await sleep(downMs);
          await restartNode(stage, node);
        },
      };
    },
  };
}

/** Kills a node with SIGKILL. */
export const kill = createRestartFault({
  kind: "kill",
  description: "kills a node (SIGKILL) and restarts it, at once or after up to 5 s",
  downMs: (someMs) => [0, 0, someMs],
  async end(_, node) {
    await node.end("SIGKILL");
  },
});

/** Stops a node with SIGTERM. */
export const stop = createRestartFault({
  kind: "stop",
  description: "stops a node (SIGTERM), which must end with code 0, and restarts it",
  downMs: (someMs) => [0, someMs],
  async end({ model }, node) {
    const code = await node.end("SIGTERM");
    if (code !== 0) {
      model.find("crashed", `${node.name} ended with ${code ?? "a signal"} when it was asked to stop.`);
    }
  },
});

/** Pauses a node with SIGSTOP and SIGCONT. */
export const pause: Fault = {
  description: "freezes a node (SIGSTOP) for 1 to 9 s",
  plan(chance) {
    const frozenMs = 1_000 + chance.below(8_000);
    return {
      title: `pause of ${inSeconds(frozenMs)}`,
      async run(_, node) {
        node.pause();
        await sleep(frozenMs);
        node.resume();
      },
    };
  },
};

/** Empties the database of a follower, which synchronizes from the start. */
export const join: Fault = {
  description:
    "empties the database of a follower, which synchronizes from the start, and sometimes kills it meanwhile",
  targets: [1, 2],
  plan(chance, target) {
    const killedAfterMs = chance.pick([undefined, 100 + chance.below(2_000)]);
    const title = killedAfterMs === undefined ? "joins anew" : `joins anew, killed after ${inSeconds(killedAfterMs)}`;
    return {
      ...{ kind: "join", target, title },
      async run(stage, node) {
        await node.end("SIGTERM");
        await emptyDatabase(stage.network, node);
        stage.model.resetNode(target);
        await restartNode(stage, node);
        if (killedAfterMs !== undefined) {
          await sleep(killedAfterMs);
          await node.end("SIGKILL");
          await restartNode(stage, node);
        }
      },
    };
  },
};

/** Shifts the clock of a node for some seconds. */
export const clock: Fault = {
  description: "sets a node's clock up to 4 minutes forward or back for 2 to 10 s",
  plan(chance) {
    const jumpMs = chance.pick([1, -1]) * (1_000 + chance.below(239_000));
    const forMs = 2_000 + chance.below(8_000);
    const way = jumpMs > 0 ? "forward" : "back";
    return {
      title: `clock ${inSeconds(Math.abs(jumpMs))} ${way} for ${inSeconds(forMs)}`,
      async run(_, node) {
        await node.shiftClock(jumpMs);
        await sleep(forMs);
        await node.shiftClock(0);
      },
    };
  },
};
