/** Names for requests. */
import { randomBytes } from "node:crypto";

/** Unlike those of another process, and cheap, since most are never looked up. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(4).toString("hex");
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
