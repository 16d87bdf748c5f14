/** Table of all attacks. */
import type { Attacks } from "./attack.js";
import { doorAttacks } from "./doors.js";
import { eventAttacks } from "./events.js";
import { exemptAttacks } from "./exempt.js";
import { frameAttacks } from "./frames.js";
import { peerAttacks } from "./peers.js";
import { readerAttacks } from "./readers.js";
import { requestAttacks } from "./requests.js";
import { streamAttacks } from "./streams.js";
import { unfinishedAttacks } from "./unfinished.js";
import { writerAttacks } from "./writers.js";

/** Attacks in the order in which they are run. */
export const attacks: Attacks = {
  ...requestAttacks,
  ...exemptAttacks,
  ...unfinishedAttacks,
  ...eventAttacks,
  ...doorAttacks,
  ...streamAttacks,
  ...readerAttacks,
  ...frameAttacks,
  ...peerAttacks,
  ...writerAttacks,
};
