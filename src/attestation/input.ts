/** Checks of an attestation before and after its verification: its encoding, and the policy of the node. */
import { RpcError } from "../rpc/errors.js";
import { decodeBase64 } from "../base/text/base64.js";
import { isJsonObject, type Json, parseJsonText } from "../base/text/parse-json.js";
import { decodeUtf8 } from "../base/text/utf8.js";
import type { VerifiedPresentation } from "./presentation.js";

export const maxPresentationBytes = 512 * 1024;

/** TLSNotary versions whose presentations the verifier supports. */
const supportedVersions = ["0.1.0-alpha.11", "0.1.0-alpha.12"] as const;

/** Limit on the nesting of the JSON form. */
const maxDepth = 16;

const hexForm = /^(?:[0-9a-fA-F]{2})+$/;

/**
 * Returns the bincode presentation of a submitted attestation. Accepts base64, hex, and the JSON
 * `{version, data, meta}` of browser clients, with hex in `data`, plain or in base64. Ignores `meta`, which is not
 * authenticated.
 *
 * @throws RpcError INVALID_REQUEST, INVALID_ATTESTATION, PAYLOAD_TOO_LARGE
 */
export function decodePresentation(attestation: string): Uint8Array {
  const text = attestation.trim();
  if (text === "") {
    throw new RpcError("INVALID_REQUEST", "attestation is required: the attestation, base64-encoded.");
  }
  if (text.startsWith("{")) {
    return decodeJson(text);
  }
  if (hexForm.test(text)) {
    return checkSize(Buffer.from(text, "hex"));
  }
  const bytes = decodeBase64(text);
  if (bytes === undefined) {
    throw reject("It is neither base64, hex nor the JSON {version, data, meta}.");
  }
  return bytes[0] === 0x7b ? decodeJson(decodeUtf8(bytes)) : checkSize(bytes);
}

function decodeJson(text: string | undefined): Uint8Array {
  let json: Json;
  try {
    json = parseJsonText(text ?? "", maxDepth);
  } catch (error) {
    throw reject(`It starts like JSON, but ${(error as Error).message}.`);
  }
  const { version, data } = isJsonObject(json) ? json : {};
  if (typeof version !== "string" || !(supportedVersions as readonly string[]).includes(version)) {
    const versionText = typeof version === "string" ? `version ${JSON.stringify(version.slice(0, 40))}` : "no version";
    throw reject(`It has ${versionText}; supported are ${supportedVersions.join(" and ")}.`);
  }
  if (typeof data !== "string" || !hexForm.test(data)) {
    throw reject("Its data is not hex.");
  }
  return checkSize(Buffer.from(data, "hex"));
}

function checkSize(bytes: Uint8Array): Uint8Array {
  if (bytes.length > maxPresentationBytes) {
    throw new RpcError("PAYLOAD_TOO_LARGE", `An attestation must not be larger than ${maxPresentationBytes} bytes.`);
  }
  return bytes;
}

export interface AttestationPolicy {
  /** Maximum age of the connection in seconds; 0 accepts any age. */
  readonly maxAgeS: number;
  /** Accepted server names in lowercase; an empty list accepts any server. */
  readonly servers: readonly string[];
}

/** Limit in seconds on the time of a connection ahead of the node's clock. */
const maxAheadS = 300;

/**
 * Checks a verified presentation against the policy.
 *
 * @throws RpcError INVALID_ATTESTATION with the violated rule.
 */
export function checkPolicy(
  { connectionTimeS, serverName }: VerifiedPresentation,
  { maxAgeS, servers }: AttestationPolicy,
  nowMs: number,
): void {
  const ageS = Math.floor(nowMs / 1000) - connectionTimeS;
  if (ageS < -maxAheadS) {
    throw reject("Its connection is in the future, by the clock of this node.");
  }
  if (maxAgeS > 0 && ageS > maxAgeS) {
    throw reject(`Its connection is ${ageS} s old; at most ${maxAgeS} s are accepted (--attestation-max-age).`);
  }
  if (servers.length > 0 && serverName === undefined) {
    throw reject("It carries no server name, and only named servers are accepted (--attestation-servers).");
  }
  if (servers.length > 0 && !servers.includes(serverName!.toLowerCase())) {
    throw reject(`Its server ${JSON.stringify(serverName)} is not accepted (--attestation-servers).`);
  }
}

function reject(why: string): RpcError {
  return new RpcError("INVALID_ATTESTATION", `The attestation is rejected. ${why}`);
}
