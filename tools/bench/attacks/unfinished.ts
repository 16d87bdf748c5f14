/** Requests whose bodies never end, of several addresses, each below its limit on connections. */
import type { Attack, Attacks } from "./attack.js";
import { framesOf, textOf } from "./exempt.js";
import { floodAttack, openStreams, publicDoor, sendAndWait } from "./flood.js";

const submission = {
  method: "POST",
  path: "/chain/transactions",
  headers: { "content-type": "application/json", "content-length": "1000" },
};
const count = 2_070;

/** Holds requests of nine addresses. With an interval, each sends a byte at that interval. */
function http1(byteEveryMs?: number): Attack {
  const beginning = Buffer.from(`${textOf(submission)}{`);
  return floodAttack((target, signal) =>
    sendAndWait(publicDoor(target), signal, beginning, { count, addresses: 9 }, byteEveryMs),
  );
}

const [sessions, http2Addresses] = [18, 6];
/** Pause in milliseconds, since an address that is rejected too often is banned. */
const pauseMs = 1_000;

export const unfinishedAttacks: Attacks = {
  "2,070 unfinished bodies, nine addresses": http1(),
  "2,070 bodies of a byte per second, nine addresses": http1(1_000),
  "2,070 unfinished bodies over HTTP/2, six addresses": floodAttack(
    (target, signal) =>
      openStreams(target, publicDoor(target), signal, framesOf(submission, Buffer.from("{"), false), {
        count: sessions,
        addresses: http2Addresses,
        streams: count / sessions,
        pauseMs,
      }),
    { transport: { http: 2 } },
  ),
};
