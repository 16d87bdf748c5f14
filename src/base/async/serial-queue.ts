/**
 * Runs work one after the other, however much is asked for at once; between two, the event loop has turns in which what
 * the first gave is dealt with. For work whose results are large: they do not pile up.
 */
export function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    // What the result was is not kept until the next one.
    last = result.then(rest, rest);
    return result;
  };
}

function rest(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
