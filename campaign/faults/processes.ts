/** Faults of processes: killed, stopped, frozen, and one that joins anew. */
import { setTimeout as sleep } from "node:timers/promises";
import { forget } from "../nodes/network.js";
import { bringBack, type Fault, inSeconds, possible, targetOf } from "./fault.js";

/** SIGKILL. */
export const kill: Fault = {
  kind: "kill",
  does: "kills a node (SIGKILL) and starts it again, at once or after up to 5 s",
  whyNot: possible,
  plan(chance, target) {
    const downMs = chance.pick([0, 0, chance.below(5_000)]);
    return {
      ...{ kind: "kill", target, title: `kill, started again after ${inSeconds(downMs)}` },
      async run(stage) {
        const node = targetOf(stage, target);
        await node.end("SIGKILL");
        await sleep(downMs);
        await bringBack(stage, node);
      },
    };
  },
};

/** SIGTERM. */
export const stop: Fault = {
  kind: "stop",
  does: "stops a node (SIGTERM), which must end with 0, and starts it again",
  whyNot: possible,
  plan(chance, target) {
    const downMs = chance.pick([0, chance.below(5_000)]);
    return {
      ...{ kind: "stop", target, title: `stop, started again after ${inSeconds(downMs)}` },
      async run(stage) {
        const node = targetOf(stage, target);
        const code = await node.end("SIGTERM");
        if (code !== 0) {
          stage.model.find("crashed", `${node.name} ended with ${code ?? "a signal"} when it was asked to stop.`);
        }
        await sleep(downMs);
        await bringBack(stage, node);
      },
    };
  },
};

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
