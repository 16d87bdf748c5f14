/** Message that proves the identity of a caller (specification, "Authentication"), as the node verifies it. */
import { createHash } from "node:crypto";
import { identityText } from "../base/crypto/signing-payloads.js";

/**
 * Returns the message that a caller signs, from the headers as sent: the hex digits of a hash, as bytes.
 *
 * @param network value of the header `network`; undefined for the older form, which is valid on every network.
 */
export function identityMessage(identity: string, timestamp: string, network: string | undefined): Buffer {
  const digest = createHash("sha256")
    .update(identityText(identity, timestamp, network), "utf8")
    .digest("hex");
  return Buffer.from(digest, "utf8");
}
