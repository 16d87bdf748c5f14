import { setTimeout as sleep } from "node:timers/promises";

/** Patience of a machine that has much else to do; what takes longer has failed. */
const patienceMs = 60_000;
const longestPauseMs = 50;

/**
 * Resolves once the condition holds. It is looked at often at first, as most things are done at once, and less often
 * later, so that what is waited for gets the machine.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string = condition.toString(),
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (let pauseMs = 2; !(await condition()); pauseMs = Math.min(1.5 * pauseMs, longestPauseMs)) {
    if (Date.now() > deadline) {
      throw new Error(`Not within ${patienceMs / 1000} s: ${what}`);
    }
    await sleep(pauseMs);
  }
}

/** Like {@link until}, where a rejection is a no, as of a node that is not there for a while. */
export async function eventually(what: string, condition: () => Promise<boolean>): Promise<void> {
  await until(() => condition().catch(() => false), what);
}
