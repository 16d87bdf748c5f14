/** Headers that prove the identity of the caller. */
import { identityOf, identityText } from "../../src/base/crypto/signing-payloads.js";
import { bytesToHex, sha256Hex, utf8ToBytes } from "./bytes.js";
import { type Signer, validateSigner } from "./signer.js";

/** Headers of a proof of identity. */
export type IdentityHeaders = Readonly<Record<"identity" | "timestamp" | "network" | "signature", string>>;

/**
 * Signs the headers that prove an identity, valid on one network for five minutes.
 *
 * @param network hash of its genesis: 0x and 64 lower-case hex digits.
 */
export async function identityHeaders(signer: Signer, network: string, nowMs = Date.now()): Promise<IdentityHeaders> {
  const { publicKey, sign } = validateSigner(signer);
  const identity = identityOf(publicKey);
  const timestamp = String(nowMs);
  const signature = await sign(utf8ToBytes(sha256Hex(identityText(identity, timestamp, network))));
  return { identity, timestamp, network, signature: `0x${bytesToHex(signature)}` };
}

/** Age in milliseconds at which headers are signed again: half of the five minutes for which a signature is valid. */
const signAgainAfterMs = 150_000;

/** Creates a function that returns the headers and caches them, so that it signs as rarely as possible. */
export function createIdentity(signer: Signer, network: () => Promise<string>): () => Promise<IdentityHeaders> {
  let signedMs = -Infinity;
  let headers: Promise<IdentityHeaders> | undefined;
  return async () => {
    const nowMs = Date.now();
    // If the clock was set back, the timestamp of an old signature is in the future.
    if (headers === undefined || Math.abs(nowMs - signedMs) > signAgainAfterMs) {
      signedMs = nowMs;
      const created = network().then((hash) => identityHeaders(signer, hash, nowMs));
      created.catch(() => {
        if (headers === created) {
          headers = undefined;
        }
      });
      headers = created;
    }
    return await headers;
  };
}
