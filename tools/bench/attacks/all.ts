/** Table of all attacks. */
import type { Attacks } from "./attack.js";
import { frameAttacks } from "./frames.js";
import { peerAttacks } from "./peers.js";
import { readerAttacks } from "./readers.js";
import { requestAttacks } from "./requests.js";
import { streamAttacks } from "./streams.js";
import { writerAttacks } from "./writers.js";

/** Attacks in the order in which they are run. */
export const attacks: Attacks = {
  ...requestAttacks,
  ...streamAttacks,
  ...readerAttacks,
  ...frameAttacks,
  ...peerAttacks,
  ...writerAttacks,
};
