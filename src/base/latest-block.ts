/** The number of a block that stands for the newest one, and the word for it. */

/** No block has it: numbers end at 2^53 - 1. */
export const latestBlock = 2n ** 64n - 1n;

/** How it is written where numbers are text. */
export const latestWord = "latest";
