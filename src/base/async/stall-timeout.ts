/** Time in milliseconds after which a stream that sends nothing counts as stalled. */
const stallMs = 10_000;

/** Error of a stream that sends nothing for too long. */
export class Stalled extends Error {}

/**
 * Yields the items of a stream. Does not end the stream: abort its signal afterwards.
 *
 * @param item name of an item in the error.
 * @throws Stalled if the next item takes longer than 10 s.
 */
export async function* withStallTimeout<T>(stream: AsyncIterable<T>, item = "data"): AsyncGenerator<T, void> {
  const iterator = stream[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Stalled(`It sent no ${item} for ${stallMs / 1_000} s.`)), stallMs);
    });
    const pending = iterator.next();
    pending.catch(() => undefined);
    try {
      const next = await Promise.race([pending, stalled]);
      if (next.done === true) {
        return;
      }
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
