/** Turns in the event loop of this process, which all ports share. */
import { FairScheduler } from "./fair-scheduler.js";

/** Requests, and all other short work of a connection. */
export const requestTurns = new FairScheduler();

/**
 * Starts of what takes long: TLS handshakes, HTTP/2 sessions, and streams of responses. Each takes up to milliseconds, the
 * handshake after its task, the session with all streams that it begins with. So one starts in a tick. While connections
 * arrive, one starts in nine ticks: a client that opens many would else delay the accept of all others by a start for each.
 */
export const startTurns = new FairScheduler(1, 8);

/**
 * Batches of long work, each up to some milliseconds. One runs in a tick, whatever number of them waits, and while
 * connections arrive, one in nine ticks: the tick of a batch accepts one connection as well.
 */
export const batchTurns = new FairScheduler(1, 8);
