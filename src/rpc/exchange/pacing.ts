/**
 * Pacing of expensive work: large bodies are parsed and large responses created one per tick of the event loop. Other
 * requests then wait for one of them, not for all.
 */
import { type HttpResponse, turnBytes } from "./exchange.js";

let lastTurn: Promise<void> = Promise.resolve();

/** Waits for a tick of the event loop that no other waiter shares. */
export async function nextTick(): Promise<void> {
  lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)));
  await lastTurn;
}

/** Bytes of the large responses that were created in this tick. */
let madeBytes = 0;

/** Creates a response now, or in a later tick if this tick has created enough bytes. */
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
