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
