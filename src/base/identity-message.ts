/** The headers by which a caller proves its identity (specification, "Authentication"): the part that both ends share. */
import { createHash } from "node:crypto";

/**
 * What a caller signs, from the headers as they are sent: the hex digits of a hash, as bytes. What names its network
 * begins with a word of its own, so that its signature fits nothing else that the same key signs.
 *
 * @param network value of the header `network`; undefined for the older form, which holds on every network.
 */
export function identityMessage(identity: string, timestamp: string, network: string | undefined): Buffer {
  const claim = `${identity}:${timestamp}`;
  const signed = network === undefined ? claim : `gatehouse-identity:${network}:${claim}`;
  return Buffer.from(createHash("sha256").update(signed, "utf8").digest("hex"), "utf8");
}
