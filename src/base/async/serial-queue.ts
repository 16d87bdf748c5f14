/**
 * Creates a queue that runs one task at a time, in order of submission. Between tasks the event loop gets time to
 * process the previous result. Use it for tasks with large results, so that results do not accumulate in memory.
 */
export function createSerialQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    // Drop the result, so that the chain does not retain it until the next task.
    last = result.then(waitTwoTicks, waitTwoTicks);
    return result;
  };
}

function waitTwoTicks(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
