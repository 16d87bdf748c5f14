import { setTimeout as sleep } from "node:timers/promises";

/** The time limit of a wait, generous for a busy machine. */
const timeoutMs = 60_000;
const maxPauseMs = 50;

/**
 * Resolves once the condition is true. Polls often at first, because most conditions are true at once, and less often
 * later, to leave the processor to the tested code.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  label: string = condition.toString(),
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (let pauseMs = 2; !(await condition()); pauseMs = Math.min(1.5 * pauseMs, maxPauseMs)) {
    if (Date.now() > deadline) {
      throw new Error(`Not within ${timeoutMs / 1000} s: ${label}`);
    }
    await sleep(pauseMs);
  }
}

/** Like {@link until}, but a rejection counts as false, for example if a node is unreachable for a while. */
export async function eventually(label: string, condition: () => Promise<boolean>): Promise<void> {
  await until(() => condition().catch(() => false), label);
}
