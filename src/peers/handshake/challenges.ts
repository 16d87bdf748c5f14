/**
 * Creates and verifies handshake challenges. A MAC authenticates each challenge, so that only used challenges are
 * stored.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { RpcError } from "../../rpc/errors.js";

const validForMs = 30_000;
const maxUsed = 10_000;

export type Challenges = ReturnType<typeof createChallenges>;

export function createChallenges(nowMs: () => number) {
  const secret = randomBytes(32);
  /** Used challenges, oldest first, with the time after which they have expired anyway. */
  const used = new Map<string, number>();

  const macOf = (body: Uint8Array): Buffer => createHmac("sha256", secret).update(body).digest().subarray(0, 16);

  function isAuthentic(challenge: Uint8Array): boolean {
    return challenge.length === 40 && timingSafeEqual(macOf(challenge.subarray(0, 24)), challenge.subarray(24));
  }

  function deleteExpired(): void {
    for (const [challenge, untilMs] of used) {
      if (untilMs > nowMs()) {
        break;
      }
      used.delete(challenge);
    }
  }

  return {
    create(): Uint8Array {
      const body = randomBytes(24);
      body.writeBigInt64BE(BigInt(nowMs()));
      return Buffer.concat([body, macOf(body)]);
    },
    /**
     * Marks a challenge as used.
     *
     * @throws RpcError INVALID_SIGNATURE if this node did not create the challenge, or if it is older than 30 s or used; RATE_LIMITED if 10,000
     * challenges were used within 30 s.
     */
    markUsed(challenge: Uint8Array): void {
      deleteExpired();
      const key = Buffer.from(challenge).toString("base64");
      const createdMs = isAuthentic(challenge) ? Number(Buffer.from(challenge).readBigInt64BE()) : -Infinity;
      if (createdMs + validForMs < nowMs() || used.has(key)) {
        throw new RpcError(
          "INVALID_SIGNATURE",
          "The challenge was not issued by this node in the last 30 s; request a new one.",
        );
      }
      if (used.size >= maxUsed) {
        throw new RpcError("RATE_LIMITED", "Too many concurrent handshakes; try again in 30 s.", 30);
      }
      used.set(key, nowMs() + validForMs);
    },
  };
}
