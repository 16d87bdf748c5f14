/**
 * Node certificates, self-signed with the node's Ed25519 key. A peer that completes a TLS handshake proves that it
 * holds the key, so no certificate authority is needed. This module writes one fixed form of X.509; node:crypto reads
 * certificates.
 */
import { createPublicKey, type KeyObject, sign, X509Certificate } from "node:crypto";
import { isStrongKey } from "./key-validation.js";

export interface TlsCredentials {
  readonly cert: string;
  readonly key: string;
}

const tag = {
  integer: 0x02,
  bits: 0x03,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
};

/** Encodes a DER value. The content must be shorter than 64 KiB. */
function der(type: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const prefix =
    length < 0x80 ? [type, length] : length < 0x100 ? [type, 0x81, length] : [type, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(prefix), content]);
}

/** Algorithm identifier 1.3.101.112, Ed25519. */
const algorithm = der(tag.sequence, der(tag.oid, Buffer.from("2b6570", "hex")));
/** Object identifier 2.5.4.3, the common name. */
const commonName = der(tag.oid, Buffer.from("550403", "hex"));
/**
 * Validity without an expiry date, because the key stays the node's identity. Dates before 2050 are UTCTime, with two
 * digits for the year (RFC 5280, 4.1.2.5).
 */
const validity = der(
  tag.sequence,
  der(tag.utcTime, Buffer.from("200101000000Z")),
  der(tag.generalizedTime, Buffer.from("99991231235959Z")),
);

export function createCertificate(privateKey: KeyObject): TlsCredentials {
  const publicKey = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  const name = der(tag.sequence, der(tag.set, der(tag.sequence, commonName, der(tag.utf8, Buffer.from("gatehouse")))));
  const content = der(
    tag.sequence,
    der(tag.version, der(tag.integer, Buffer.of(2))),
    der(tag.integer, Buffer.of(1)),
    algorithm,
    name,
    validity,
    name,
    publicKey,
  );
  const signature = der(tag.bits, Buffer.of(0), sign(null, content, privateKey));
  return {
    cert: new X509Certificate(der(tag.sequence, content, algorithm, signature)).toString(),
    key: privateKey.export({ format: "pem", type: "pkcs8" }) as string,
  };
}

/**
 * Returns the identity that a certificate proves.
 *
 * @param raw the certificate in DER, as TLS provides it; undefined or empty if the peer sent none.
 * @returns 0x and 64 lower-case hex digits; undefined unless the certificate has a valid Ed25519 key.
 */
export function identityOfCertificate(raw: Buffer | undefined): string | undefined {
  if (raw === undefined || raw.length === 0) {
    return undefined;
  }
  try {
    const { publicKey } = new X509Certificate(raw);
    const { x, crv } = publicKey.export({ format: "jwk" });
    const identity = `0x${Buffer.from(x ?? "", "base64url").toString("hex")}`;
    return crv === "Ed25519" && isStrongKey(identity) ? identity : undefined;
  } catch {
    return undefined;
  }
}
