/** The headers by which a caller proves its identity (specification, "Authentication"): the part that both ends share. */
import { createHash } from "node:crypto";

/** What a caller signs, from both headers as they are sent: the hex digits of a hash, as bytes. */
export function identityMessage(identity: string, timestamp: string): Buffer {
  return Buffer.from(createHash("sha256").update(`${identity}:${timestamp}`, "utf8").digest("hex"), "utf8");
}
