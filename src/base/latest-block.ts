/** Number and text that stand for the latest block. */

/** Number that no block can have, since block numbers end at 2^53 - 1. */
export const latestBlock = 2n ** 64n - 1n;

/** Text for the latest block in places where block numbers are text. */
export const latestKeyword = "latest";
