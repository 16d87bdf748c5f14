/** Event streams that are opened again as soon as they respond. */
import type { Attacks } from "./attack.js";
import { textOf } from "./exempt.js";
import { floodAttack, openAndLeave, publicDoor } from "./flood.js";

const [count, addresses, filters] = [1_900, 19, 100];
/** Hexadecimal digits of a program address and of a public key. */
const [addressDigits, keyDigits] = [40, 64];
const hex = (i: number, digits: number): string => i.toString(16).padStart(digits, "0");
const values = Array.from(
  { length: filters },
  (_, i) => `addresses=stor-${hex(i, addressDigits)}&owners=0x${hex(i, keyDigits)}`,
);
const request = Buffer.from(
  textOf({ method: "GET", path: `/events?fromBlock=1&${values.join("&")}`, headers: { accept: "text/event-stream" } }),
);

export const eventAttacks: Attacks = {
  "1,900 reopened event streams with 200 filters": floodAttack((target, signal) =>
    openAndLeave(publicDoor(target), signal, request, { count, addresses }),
  ),
};
