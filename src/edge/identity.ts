/**
 * Who calls: an Ed25519 key that the caller proves to hold with three headers, `identity`, `timestamp` and `signature`
 * (specification, "Authentication"). One signature serves any number of reads while its timestamp is fresh, so it is
 * verified once and remembered until then; nothing that writes relies on it.
 */
import { LRUCache } from "lru-cache";
import { verifyEd25519 } from "../base/ed25519.js";
import { identityMessage } from "../base/identity-message.js";
import { Failure } from "../rpc/errors.js";

/** How callers prove their identity. */
export type IdentityMode = "signed" | "trusted-header";

/** How far a timestamp may be from the node's clock, in either direction. */
const windowMs = 5 * 60_000;
/** Most signatures that are remembered. */
const maxRemembered = 10_000;

/**
 * Request headers to the caller's key: 0x and 64 lower-case hex digits; undefined for an anonymous caller.
 *
 * @throws Failure INVALID_SIGNATURE when there is a signature that does not prove the identity.
 */
export type Identify = (header: (name: string) => string | undefined) => string | undefined;

export function createIdentify(mode: IdentityMode, nowMs: () => number): Identify {
  return mode === "trusted-header" ? trustedHeader : createSignedIdentify(nowMs);
}

/** A gateway in front of the node has authenticated the caller already. */
const trustedHeader: Identify = (header) => {
  const claim = header("identity") ?? "";
  if (isEmpty(claim)) {
    return undefined;
  }
  const key = parseKey(claim);
  if (key === undefined) {
    throw invalid("The identity is not an Ed25519 public key of 64 hex digits.");
  }
  return `0x${key}`;
};

function createSignedIdentify(nowMs: () => number): Identify {
  const verified = new LRUCache<string, { readonly identity: string; readonly timestampMs: number }>({
    max: maxRemembered,
  });

  return (header) => {
    const signature = header("signature") ?? "";
    if (signature === "") {
      return undefined;
    }
    const claim = header("identity") ?? "";
    const timestamp = header("timestamp") ?? "";
    const proof = `${claim}\n${timestamp}\n${signature}`;
    const known = verified.get(proof);
    if (known !== undefined) {
      checkFresh(known.timestampMs, nowMs());
      return known.identity;
    }
    const proven = verifyProof(claim, timestamp, signature, nowMs());
    verified.set(proof, proven);
    return proven.identity;
  };
}

function verifyProof(claim: string, timestamp: string, signature: string, now: number) {
  const key = parseKey(claim);
  if (key === undefined) {
    throw invalid("The identity that was signed is not an Ed25519 public key of 64 hex digits.");
  }
  if (!/^\d{1,15}$/.test(timestamp)) {
    throw invalid("The timestamp must be milliseconds since the epoch.");
  }
  const timestampMs = Number(timestamp);
  checkFresh(timestampMs, now);
  const bytes = /^(?:0x)?([0-9a-fA-F]{128})$/.exec(signature)?.[1];
  if (bytes === undefined) {
    throw invalid("The signature must be 0x and 128 hex digits.");
  }
  if (!verifyEd25519(key, identityMessage(claim, timestamp), Buffer.from(bytes, "hex"))) {
    throw invalid("The signature does not fit the identity and the timestamp.");
  }
  return { identity: `0x${key}`, timestampMs };
}

function checkFresh(timestampMs: number, now: number): void {
  if (Math.abs(now - timestampMs) > windowMs) {
    throw invalid(`The timestamp is more than ${windowMs / 60_000} minutes from the node's clock.`);
  }
}

/** Nothing, or the prefix alone, as clients without a key send it. */
function isEmpty(claim: string): boolean {
  return claim === "" || claim === "ed25519:";
}

/** 64 lower-case hex digits; the prefixes `ed25519:` and `0x` are each optional. */
function parseKey(claim: string): string | undefined {
  return /^(?:ed25519:)?(?:0x)?([0-9a-fA-F]{64})$/.exec(claim)?.[1]?.toLowerCase();
}

function invalid(message: string): Failure {
  return new Failure("INVALID_SIGNATURE", message);
}
