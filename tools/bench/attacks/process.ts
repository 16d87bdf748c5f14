/** Runs an attack in a separate process, so that it does not slow down the measurement. */
import { setMaxListeners } from "node:events";
import { constants, setPriority } from "node:os";
import { attacks } from "./all.js";
import type { AttackCounts, Target } from "./attack.js";

/** First message to the process, after it has sent "ready". The second message, of any content, ends the attack. */
export interface Order {
  readonly name: string;
  readonly target: Target;
  /** Time after which the attack ends by itself, in seconds. */
  readonly maxSeconds: number;
}

/** Result that the process reports at the end. */
export interface Report {
  readonly deeds: AttackCounts;
}

/** Sent once the code is loaded, which takes a second of a processor. */
const ready = "ready";

process.once("message", ({ name, target, maxSeconds }: Order) => {
  // A remote attacker would not take the node's processor: this one gets what node and clients leave. At the lowest
  // priority it would get nothing while another program uses the machine.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  const stop = (): void => over.abort();
  process.once("message", stop).once("disconnect", () => process.exit());
  setTimeout(stop, maxSeconds * 1000).unref();
  const before = process.cpuUsage();
  void attacks[name]!.harm(target, over.signal).then((deeds = {}) => {
    const { user, system } = process.cpuUsage(before);
    const report = { deeds: { ...deeds, "attacker's processor s": (user + system) / 1e6 } } satisfies Report;
    process.send?.(report, () => process.exit());
  });
});
process.send?.(ready);
