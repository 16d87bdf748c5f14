/**
 * Turns of the event loop for what takes long: large bodies are parsed, and large answers made, one in each turn,
 * however many there are at once. What else arrives waits for one of them, not for all.
 */
import { type HttpResponse, turnBytes } from "./exchange.js";

let lastTurn: Promise<void> = Promise.resolve();

/** Waits for a turn of one's own. */
export async function nextTick(): Promise<void> {
  lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
  await lastTurn;
}

/** Bytes of the large answers that were made in this turn. */
let madeBytes = 0;

/** Makes an answer now, or in a later turn where enough were made in this one. */
export function respondInTurn(make: () => HttpResponse): HttpResponse | Promise<HttpResponse> {
  if (madeBytes > turnBytes) {
    return nextTick().then(() => respondInTurn(make));
  }
  const answer = make();
  const bytes = answer.body?.length ?? 0;
  if (bytes > turnBytes && answer.isShared !== true) {
    if (madeBytes === 0) {
      setImmediate(() => (madeBytes = 0));
    }
    madeBytes += bytes;
  }
  return answer;
}
