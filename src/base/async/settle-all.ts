/**
 * The results of work that goes on side by side, once all of it has ended, also where some of it failed: then it throws what
 * the first of the list threw.
 */
export async function settleAll<T extends readonly unknown[]>(work: {
  readonly [K in keyof T]: Promise<T[K]>;
}): Promise<T> {
  const ended = await Promise.allSettled(work);
  for (const one of ended) {
    if (one.status === "rejected") {
      throw one.reason;
    }
  }
  return ended.map((one) => (one as PromiseFulfilledResult<unknown>).value) as unknown as T;
}
