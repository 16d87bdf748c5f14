/** Turns in the event loop of this process, which all ports share. */
import { FairScheduler } from "./fair-scheduler.js";

/** Requests, and all other short work of a connection. */
export const requestTurns = new FairScheduler();

/**
 * Time for which ticks that accept a connection skip what takes long, in milliseconds: time for some ten connections. A
 * client that opens many would otherwise delay the accept of all others by a task for each.
 */
const acceptMs = 4;

/**
 * Starts of what takes long: TLS handshakes, HTTP/2 sessions, and streams of responses. Each takes up to milliseconds, the
 * handshake after its task, the session with all streams that it begins with. So one starts in a tick, and while
 * connections arrive, one in some ticks.
 */
export const startTurns = new FairScheduler(1, acceptMs);

/**
 * Batches of long work, each up to some milliseconds. One runs in a tick, whatever number of them waits, and while
 * connections arrive, one in 20 ms.
 */
export const batchTurns = new FairScheduler(1, 5 * acceptMs);

/** Counts a connection that was accepted: the next tick is awaited, since it accepts another one. */
export function countAccept(): void {
  requestTurns.hurry();
  startTurns.hurry();
  batchTurns.hurry();
}
