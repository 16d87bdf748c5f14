/** Headers that prove who reads. */
import { identityOf, identityText } from "../../src/base/crypto/signing-payloads.js";
import { bytesToHex, sha256Hex, utf8ToBytes } from "./bytes.js";
import { type Signer, toKnownSigner } from "./signer.js";

/** The four headers. */
export type IdentityHeaders = Readonly<Record<"identity" | "timestamp" | "network" | "signature", string>>;

/**
 * Signs the headers that prove an identity, on one network, for five minutes.
 *
 * @param network hash of its genesis: 0x and 64 lower-case hex digits.
 */
export async function identityHeaders(signer: Signer, network: string, nowMs = Date.now()): Promise<IdentityHeaders> {
  const { publicKey, sign } = toKnownSigner(signer);
  const identity = identityOf(publicKey);
  const timestamp = String(nowMs);
  const signature = await sign(utf8ToBytes(sha256Hex(identityText(identity, timestamp, network))));
  return { identity, timestamp, network, signature: `0x${bytesToHex(signature)}` };
}

/** One signature is good for five minutes; it is made anew after half of that. */
const signAgainAfterMs = 150_000;

/** Gives the headers, and signs as seldom as can be. */
export function createIdentity(signer: Signer, network: () => Promise<string>): () => Promise<IdentityHeaders> {
  let signedMs = -Infinity;
  let headers: Promise<IdentityHeaders> | undefined;
  return async () => {
    const nowMs = Date.now();
    // A clock that was set back makes an old signature one of the future.
    if (headers === undefined || Math.abs(nowMs - signedMs) > signAgainAfterMs) {
      signedMs = nowMs;
      const made = network().then((hash) => identityHeaders(signer, hash, nowMs));
      made.catch(() => {
        if (headers === made) {
          headers = undefined;
        }
      });
      headers = made;
    }
    return await headers;
  };
}
