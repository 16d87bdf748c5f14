/** Blocks that exist according to their signed headers, and that this node has not stored yet. */

/** Limit on the announcements that are remembered one by one. */
const maxRemembered = 256;

/** Creates the record of announced blocks. `nowMs` is a monotonic clock. */
export function createMissingBlocks(nowMs: () => number) {
  /** Missing blocks, each the latest one when it was announced, in ascending order. */
  const missing: { number: bigint; readonly sinceMs: number }[] = [];
  let latestNumber = 0n;

  function removeStored(number: bigint): void {
    const remaining = missing.findIndex((block) => block.number > number);
    missing.splice(0, remaining === -1 ? missing.length : remaining);
  }

  return {
    /** Returns the highest number of any announced block, 0 if there is none. */
    latestNumber: () => latestNumber,
    /** Records that the block with this number exists. */
    announce(number: bigint): void {
      if (number <= latestNumber) {
        return;
      }
      latestNumber = number;
      if (missing.length < maxRemembered) {
        missing.push({ number, sinceMs: nowMs() });
      } else {
        // Far behind, so the exact times of the last ones do not matter.
        missing.at(-1)!.number = number;
      }
    },
    /** Records that all blocks up to this number are stored. */
    removeStored,
    /** Returns for how long, in milliseconds, a block after this number is known and missing; 0 if none is. */
    missingForMs(number: bigint): number {
      removeStored(number);
      const [first] = missing;
      return first === undefined ? 0 : nowMs() - first.sinceMs;
    },
  };
}
