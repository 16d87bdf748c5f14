/** Event streams that are opened again as soon as they respond. */
import type { Attacks } from "./attack.js";
import { textOf } from "./exempt.js";
import { floodAttack, openAndLeave, publicDoor } from "./flood.js";

const [count, addresses, filters] = [1_900, 19, 100];
const hex = (i: number): string => `0x${i.toString(16).padStart(64, "0")}`;
const values = Array.from({ length: filters }, (_, i) => `addresses=${hex(i)}&owners=${hex(i)}`);
const request = Buffer.from(
  textOf({ method: "GET", path: `/events?fromBlock=1&${values.join("&")}`, headers: { accept: "text/event-stream" } }),
);

export const eventAttacks: Attacks = {
  "1,900 reopened event streams with 200 filters": floodAttack((target, signal) =>
    openAndLeave(publicDoor(target), signal, request, { count, addresses }),
  ),
};
