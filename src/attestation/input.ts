/** Checks of an attestation before and after its verification: its encoding, and the policy of the node. */
import { RpcError } from "../rpc/errors.js";
import { isNestedDeeper } from "../base/text/json-depth.js";
import type { VerifiedPresentation } from "./presentation.js";

export const maxPresentationBytes = 512 * 1024;

/** TLSNotary versions whose presentations the verifier supports. */
const supportedVersions = ["0.1.0-alpha.11", "0.1.0-alpha.12"] as const;

/** Limit on the nesting of the JSON form: parsing 1 MB of brackets would take 0.1 s. */
const maxDepth = 16;

const hexForm = /^(?:[0-9a-fA-F]{2})+$/;
const base64Form = /^[A-Za-z0-9+/_-]+={0,2}$/;

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
  if (!base64Form.test(text)) {
    throw reject("It is neither base64, hex nor the JSON {version, data, meta}.");
  }
  const bytes = Buffer.from(text, "base64");
  return bytes[0] === 0x7b ? decodeJson(bytes.toString("utf8")) : checkSize(bytes);
}

function decodeJson(text: string): Uint8Array {
  if (isNestedDeeper(text, maxDepth)) {
    throw reject("Its JSON is nested too deep.");
  }
  let json: { readonly version?: unknown; readonly data?: unknown };
  try {
    json = JSON.parse(text) as typeof json;
  } catch {
    throw reject("It starts like JSON, but is not valid JSON.");
  }
  const { version, data } = json;
  if (typeof version !== "string" || !(supportedVersions as readonly string[]).includes(version)) {
    const versionText = typeof version === "string" ? `version ${JSON.stringify(version.slice(0, 40))}` : "no version";
    throw reject(`It has ${versionText}; supported are ${supportedVersions.join(" and ")}.`);
  }
  if (typeof data !== "string" || !hexForm.test(data)) {
    throw reject("Its data is not hex.");
  }
  return checkSize(Buffer.from(data, "hex"));
}

function checkSize(bytes: Buffer): Uint8Array {
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
