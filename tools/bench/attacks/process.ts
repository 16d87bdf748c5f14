/** A process of its own in which an attack is made: what it does must not hold up those who watch. */
import { setMaxListeners } from "node:events";
import { attacks } from "./all.js";
import type { Deeds, Target } from "./attack.js";

/** What the process is told first; the second message, whichever it is, ends the attack. */
export interface Order {
  readonly name: string;
  readonly target: Target;
}

/** What it tells in the end. */
export interface Report {
  readonly deeds: Deeds;
}

process.once("message", ({ name, target }: Order) => {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  process.once("message", () => over.abort());
  void attacks[name]!.harm(target, over.signal).then((deeds = {}) => {
    process.send?.({ deeds } satisfies Report, () => process.exit());
  });
});
