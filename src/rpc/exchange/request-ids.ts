/** Generation of request IDs. */
import { randomBytes } from "node:crypto";

/**
 * Creates a generator of request IDs. A random prefix separates processes; a counter is cheap, since few IDs are ever
 * used.
 */
export function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
