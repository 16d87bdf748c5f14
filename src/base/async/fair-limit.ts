/**
 * Limit on concurrent work that takes much memory, such as the decompression of a message. Beyond the limit, work waits,
 * and keys, such as client addresses, take turns: a key with a thousand tasks delays the task of another key by one.
 */
export class FairLimit {
  private running = 0;
  /** Starts of the work that waits, by key. The first key is next. */
  private readonly waiting = new Map<string, (() => void)[]>();

  /** @param maxRunning limit on the concurrent work. */
  constructor(private readonly maxRunning: number) {}

  /** Runs work once there is room, and returns its result. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.running < this.maxRunning) {
      this.running++;
    } else {
      await this.turn(key);
    }
    try {
      return await work();
    } finally {
      this.pass();
    }
  }

  private turn(key: string): Promise<void> {
    return new Promise((resolve) => {
      const starts = this.waiting.get(key) ?? [];
      starts.push(resolve);
      this.waiting.set(key, starts);
    });
  }

  /** Passes the room of ended work on to the next key. */
  private pass(): void {
    const next = this.waiting.entries().next().value;
    if (next === undefined) {
      this.running--;
      return;
    }
    const [key, starts] = next;
    const start = starts.shift()!;
    this.waiting.delete(key);
    if (starts.length > 0) {
      this.waiting.set(key, starts);
    }
    start();
  }
}
