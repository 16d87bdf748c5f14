/** The headers by which a caller proves its identity (specification, "Authentication"), as the node checks them. */
import { createHash } from "node:crypto";
import { identityText } from "../base/crypto/signing-payloads.js";

/**
 * What a caller signs, from the headers as they are sent: the hex digits of a hash, as bytes.
 *
 * @param network value of the header `network`; undefined for the older form, which holds on every network.
 */
export function identityMessage(identity: string, timestamp: string, network: string | undefined): Buffer {
  const digest = createHash("sha256")
    .update(identityText(identity, timestamp, network), "utf8")
    .digest("hex");
  return Buffer.from(digest, "utf8");
}
