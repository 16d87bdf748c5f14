/** Turns in the event loop of this process, which all ports share. */
import { FairScheduler } from "./fair-scheduler.js";

/** Requests, and all other short work of a connection. */
export const requestTurns = new FairScheduler();

/**
 * Interval in milliseconds at which a task that takes long runs while connections arrive: time for some ten connections.
 * With one task in each tick, a client that opens many would delay the accept of all others by a task for each.
 */
const acceptMs = 4;

/**
 * TLS handshakes, a millisecond each after their task. They have turns of their own, since under a flood of HTTP/2 sessions a
 * tick takes as long as many handshakes, and with one in each, honest clients would wait for hundreds of ticks.
 */
export const handshakeTurns = new FairScheduler(4, acceptMs);

/**
 * Starts of HTTP/2 sessions, and of streams of responses. Each takes up to milliseconds, the session with all streams that
 * it begins with. So one starts in a tick, and while connections arrive, one in 4 ms.
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
  handshakeTurns.hurry();
  startTurns.hurry();
  batchTurns.hurry();
}
