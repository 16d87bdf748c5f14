/** Waits until every promise settles. Returns the results, or throws the first rejection in list order. */
export async function settleAll<T extends readonly unknown[]>(work: {
  readonly [K in keyof T]: Promise<T[K]>;
}): Promise<T> {
  const results = await Promise.allSettled(work);
  for (const result of results) {
    if (result.status === "rejected") {
      throw result.reason;
    }
  }
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as unknown as T;
}
