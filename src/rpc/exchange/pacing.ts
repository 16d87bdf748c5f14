/**
 * Pacing of expensive work: large bodies are parsed and large responses created one per tick of the event loop. Other
 * requests then wait for one of them, not for all.
 */
import { type HttpResponse, maxTickBytes } from "./exchange.js";

let lastTick: Promise<void> = Promise.resolve();

/** Waits for a tick of the event loop that no other waiter shares. */
export async function nextTick(): Promise<void> {
  lastTick = lastTick.then(() => new Promise((resolve) => setImmediate(resolve)));
  await lastTick;
}

/** Bytes of the large responses that were created in this tick. */
let createdBytes = 0;

/** Creates a response now, or in a later tick if this tick has created enough bytes. */
export function paceResponse(create: () => HttpResponse): HttpResponse | Promise<HttpResponse> {
  if (createdBytes > maxTickBytes) {
    return nextTick().then(() => paceResponse(create));
  }
  const response = create();
  const bytes = response.body?.length ?? 0;
  if (bytes > maxTickBytes && response.isShared !== true) {
    if (createdBytes === 0) {
      setImmediate(() => (createdBytes = 0));
    }
    createdBytes += bytes;
  }
  return response;
}
