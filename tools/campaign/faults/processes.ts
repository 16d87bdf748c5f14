/** Faults of processes: killed, stopped, frozen, and one that joins anew. */
import { setTimeout as sleep } from "node:timers/promises";
import { forget } from "../nodes/network.js";
import type { CampaignNode } from "../nodes/node.js";
import { bringBack, type Fault, inSeconds, possible, type Stage, targetOf } from "./fault.js";

interface Ending extends Pick<Fault, "does"> {
  readonly kind: "kill" | "stop";
  /** How long it may be down, of which one is drawn; `someMs` is drawn, too. */
  readonly downMs: (someMs: number) => readonly number[];
  readonly end: (stage: Stage, node: CampaignNode) => Promise<void>;
}

/** A fault that ends a node, and starts it again after a while. */
function createEnding({ kind, does, downMs: choose, end }: Ending): Fault {
  return {
    ...{ kind, does, whyNot: possible },
    plan(chance, target) {
      const downMs = chance.pick(choose(chance.below(5_000)));
      return {
        ...{ kind, target, title: `${kind}, started again after ${inSeconds(downMs)}` },
        async run(stage) {
          const node = targetOf(stage, target);
          await end(stage, node);
          await sleep(downMs);
          await bringBack(stage, node);
        },
      };
    },
  };
}

/** SIGKILL. */
export const kill = createEnding({
  kind: "kill",
  does: "kills a node (SIGKILL) and starts it again, at once or after up to 5 s",
  downMs: (someMs) => [0, 0, someMs],
  async end(_, node) {
    await node.end("SIGKILL");
  },
});

/** SIGTERM. */
export const stop = createEnding({
  kind: "stop",
  does: "stops a node (SIGTERM), which must end with 0, and starts it again",
  downMs: (someMs) => [0, someMs],
  async end({ model }, node) {
    const code = await node.end("SIGTERM");
    if (code !== 0) {
      model.find("crashed", `${node.name} ended with ${code ?? "a signal"} when it was asked to stop.`);
    }
  },
});

/** SIGSTOP and SIGCONT. */
export const pause: Fault = {
  kind: "pause",
  does: "freezes a node (SIGSTOP) for 1 to 9 s",
  whyNot: possible,
  plan(chance, target) {
    const frozenMs = 1_000 + chance.below(8_000);
    return {
      ...{ kind: "pause", target, title: `pause of ${inSeconds(frozenMs)}` },
      async run(stage) {
        const node = targetOf(stage, target);
        node.pause();
        await sleep(frozenMs);
        node.resume();
      },
    };
  },
};

/** A follower without a database. */
export const join: Fault = {
  kind: "join",
  does: "takes a follower's database away; it joins anew, and is killed now and then while it does",
  targets: [1, 2],
  whyNot: possible,
  plan(chance, target) {
    const killedAfterMs = chance.pick([undefined, 100 + chance.below(2_000)]);
    const title = killedAfterMs === undefined ? "joins anew" : `joins anew, killed after ${inSeconds(killedAfterMs)}`;
    return {
      ...{ kind: "join", target, title },
      async run(stage) {
        const node = targetOf(stage, target);
        await node.end("SIGTERM");
        await forget(stage.network, node);
        stage.model.forget(target);
        await bringBack(stage, node);
        if (killedAfterMs !== undefined) {
          await sleep(killedAfterMs);
          await node.end("SIGKILL");
          await bringBack(stage, node);
        }
      },
    };
  },
};
