/** Runs an attack in a separate process, so that it does not slow down the measurement. */
import { setMaxListeners } from "node:events";
import { attacks } from "./all.js";
import type { AttackCounts, Target } from "./attack.js";

/** First message to the process. The second message, of any content, ends the attack. */
export interface Order {
  readonly name: string;
  readonly target: Target;
}

/** Result that the process reports at the end. */
export interface Report {
  readonly deeds: AttackCounts;
}

process.once("message", ({ name, target }: Order) => {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  process.once("message", () => over.abort());
  void attacks[name]!.harm(target, over.signal).then((deeds = {}) => {
    process.send?.({ deeds } satisfies Report, () => process.exit());
  });
});
