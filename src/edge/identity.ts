/**
 * Authenticates callers by Ed25519 key. The headers `identity`, `timestamp` and `signature` prove that the caller holds
 * the key (specification, "Authentication"). With the header `network` the proof is valid on one network; without it,
 * on all of them. One signature may serve any number of reads while its timestamp is fresh, so each is verified once
 * and cached. Writes never rely on it.
 */
import { hash } from "node:crypto";
import { createLruCache } from "../base/caches/lru-cache.js";
import { verifyEd25519 } from "../base/crypto/ed25519.js";
import { isStrongKey } from "../base/crypto/key-validation.js";
import { toPublicKey } from "../base/crypto/parse-hash.js";
import { hex32, identityText } from "../base/crypto/signing-payloads.js";
import { RpcError } from "../rpc/errors.js";
import type { RequestHeader } from "../rpc/gate.js";

/** Source of identities: signed headers, or a header that a trusted gateway sets. */
export type IdentityMode = "signed" | "trusted-header";
/** Accepted forms of proof: with or without a network, or only with one. */
export type IdentityForm = "any" | "network";

export interface IdentitySettings {
  readonly identityMode: IdentityMode;
  readonly identityForm: IdentityForm;
  /** Hash of this node's genesis; undefined before it has one, when proofs for a network are rejected. */
  readonly network: string | undefined;
}

/** Limit on the age of a timestamp in milliseconds. */
const maxAgeMs = 5 * 60_000;
/** Limit in milliseconds on timestamps ahead of the node's clock, to permit clock skew. */
const maxAheadMs = 60_000;
const maxCachedProofs = 10_000;

/** Returns a request header by lower-case name. */
type Header = (name: RequestHeader) => string | undefined;

/**
 * Returns the caller's key from the request headers: 0x and 64 lower-case hex digits; undefined for an anonymous
 * caller.
 *
 * @throws RpcError INVALID_SIGNATURE if a signature does not prove the identity; STATE_NOT_READY if this node has no
 * genesis to compare the network with.
 */
export type Identify = (header: Header) => string | undefined;

export function createIdentify(settings: IdentitySettings, nowMs: () => number): Identify {
  return settings.identityMode === "trusted-header" ? trustedHeader : createSignedIdentify(settings, nowMs);
}

/** Identifies callers that a gateway in front of the node has authenticated. */
const trustedHeader: Identify = (header) => {
  const claim = header("identity") ?? "";
  // Clients without a key send an empty header, or the prefix alone.
  if (claim === "" || claim === "ed25519:") {
    return undefined;
  }
  const key = parseKey(claim);
  if (key === undefined) {
    throw invalid("The identity is not an Ed25519 public key of 64 hex digits.");
  }
  return key;
};

interface Proven {
  /** Undefined if the signature proves no identity. */
  readonly identity: string | undefined;
  /** Undefined for a signature without a timestamp, which does not expire. */
  readonly timestampMs: number | undefined;
}

function createSignedIdentify(settings: IdentitySettings, nowMs: () => number): Identify {
  const verified = createLruCache<Proven>(maxCachedProofs);

  return (header) => {
    const [claim, timestamp, signature, network] = (["identity", "timestamp", "signature", "network"] as const).map(
      (name) => header(name) ?? "",
    ) as [string, string, string, string];
    if (signature === "") {
      return undefined;
    }
    const cacheKey = `${claim}\n${timestamp}\n${signature}\n${network}`;
    let proven = verified.get(cacheKey);
    if (proven === undefined) {
      proven = verifyProof({ claim, timestamp, signature, network: network || undefined }, settings, nowMs());
      verified.set(cacheKey, proven);
    } else if (proven.timestampMs !== undefined) {
      checkFresh(proven.timestampMs, nowMs());
    }
    return proven.identity;
  };
}

interface Proof {
  readonly claim: string;
  readonly timestamp: string;
  readonly signature: string;
  /** Undefined in the older form. */
  readonly network: string | undefined;
}

/**
 * Returns the message that a caller signs, from the headers as sent: the hex digits of a hash, as bytes.
 *
 * @param network value of the header `network`; undefined for the older form, which is valid on every network.
 */
export function identityMessage(identity: string, timestamp: string, network: string | undefined): Buffer {
  return Buffer.from(hash("sha256", identityText(identity, timestamp, network), "hex"));
}

function verifyProof(proof: Proof, settings: IdentitySettings, now: number): Proven {
  const { claim, timestamp, signature, network } = proof;
  const key = parseKey(claim);
  if (key === undefined) {
    throw invalid("The identity that was signed is not an Ed25519 public key of 64 hex digits.");
  }
  if (settings.identityForm === "any" && isWithoutTimestamp(proof, key)) {
    return { identity: undefined, timestampMs: undefined };
  }
  if (!/^(0|[1-9]\d{0,14})$/.test(timestamp)) {
    throw invalid("The timestamp must be milliseconds since the epoch.");
  }
  const timestampMs = Number(timestamp);
  checkFresh(timestampMs, now);
  checkNetwork(network, settings);
  const bytes = parseSignature(signature);
  if (bytes === undefined) {
    throw invalid("The signature must be 0x and 128 hex digits.");
  }
  if (!verifyEd25519(key, identityMessage(claim, timestamp, network), bytes)) {
    const signed = network === undefined ? "the identity and the timestamp" : "the network, identity and timestamp";
    throw invalid(`The signature is not valid for ${signed}.`);
  }
  return { identity: key, timestampMs };
}

/**
 * Returns true for the signature that existing clients send with each call: the key has signed its own digits, without
 * a timestamp. It can be replayed forever, so it proves no identity. Rejecting it would make these calls fail.
 */
function isWithoutTimestamp({ claim, timestamp, signature, network }: Proof, key: string): boolean {
  const bytes = timestamp === "" && network === undefined ? parseSignature(signature) : undefined;
  return bytes !== undefined && verifyEd25519(key, Buffer.from(claim.replace(/^ed25519:/, "")), bytes);
}

function checkFresh(timestampMs: number, now: number): void {
  if (now - timestampMs > maxAgeMs) {
    throw invalid(`The timestamp is more than ${maxAgeMs / 60_000} minutes before the node's clock.`);
  }
  if (timestampMs - now > maxAheadMs) {
    throw invalid(`The timestamp is more than ${maxAheadMs / 1_000} seconds ahead of the node's clock.`);
  }
}

/**
 * Checks the network that the proof names. A proof without a network is valid on all networks that accept the older
 * form.
 */
function checkNetwork(signedNetwork: string | undefined, { identityForm, network }: IdentitySettings): void {
  if (signedNetwork === undefined) {
    if (identityForm === "network") {
      throw invalid(
        "This node accepts only identities that name its network: also send the header network, the genesis hash " +
          "(GET /chain/head), and sign the lower-case hex SHA-256 of gatehouse-identity:<network>:<identity>:<timestamp>.",
      );
    }
  } else if (!hex32.test(signedNetwork)) {
    throw invalid("The network must be the hash of its genesis: 0x and 64 lower-case hex digits.");
  } else if (network === undefined) {
    throw new RpcError(
      "STATE_NOT_READY",
      "The identity is signed for a network, but this node has no genesis yet; try again later.",
    );
  } else if (signedNetwork !== network) {
    throw invalid(`The identity is signed for the network ${signedNetwork}, and this node belongs to ${network}.`);
  }
}

function parseKey(claim: string): string | undefined {
  const key = toPublicKey(claim);
  return key !== undefined && isStrongKey(key) ? key : undefined;
}

function parseSignature(signature: string): Buffer | undefined {
  const digits = /^(?:0x)?([0-9a-fA-F]{128})$/.exec(signature)?.[1];
  return digits === undefined ? undefined : Buffer.from(digits, "hex");
}

function invalid(message: string): RpcError {
  return new RpcError("INVALID_SIGNATURE", message);
}
