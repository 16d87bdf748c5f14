/** How reads of blocks are refused. */

export const noBlockYet = "There is no such block yet.";
export const blockZero = "Block 0 is the genesis: GET /genesis.";
