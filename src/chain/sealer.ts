/** Makes blocks where one node alone may: its key is the genesis's single authority. */
import type { Chain, SealingKey } from "./chain.js";

/** A sealer at work. */
export interface Sealer {
  /** Ends it, after the block under way. */
  stop(): Promise<void>;
}

/**
 * Looks for pending transactions again and again, and makes a block of them.
 *
 * @param onError hears of a block that could not be made; it is tried again.
 */
export function startSealer(
  chain: Pick<Chain, "seal">,
  key: SealingKey,
  intervalMs: number,
  onError: (error: unknown) => void,
): Sealer {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let underWay: Promise<void> = Promise.resolve();

  async function seal(): Promise<void> {
    try {
      await chain.seal(key);
    } catch (error) {
      onError(error);
    }
    schedule();
  }

  function schedule(): void {
    if (!stopped) {
      timer = setTimeout(() => {
        underWay = seal();
      }, intervalMs);
    }
  }

  schedule();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await underWay;
    },
  };
}
