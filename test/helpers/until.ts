import { setTimeout as sleep } from "node:timers/promises";

/** Resolves once the condition holds; rejects when it does not within ten seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > deadline) {
      throw new Error("The condition did not come true within 10 s.");
    }
    await sleep(5);
  }
}

/** Like {@link until}, with a minute's patience, for what several nodes on two cores do; a rejection is a no. */
export async function eventually(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await condition().catch(() => false))) {
    if (Date.now() > deadline) {
      throw new Error(`Not within a minute: ${what}`);
    }
    await sleep(50);
  }
}
