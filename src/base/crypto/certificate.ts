/**
 * Certificates of nodes: self-signed, with the node's Ed25519 key, so that who completes a TLS handshake has proved to
 * hold that key, and nothing else has to be believed. One fixed shape of X.509 is written here; it is read by
 * node:crypto.
 */
import { createPublicKey, type KeyObject, sign, X509Certificate } from "node:crypto";
import { isStrongKey } from "./key-validation.js";

/** What a TLS end shows and signs with, in PEM. */
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

/** A value of DER. */
function der(type: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const prefix =
    length < 0x80 ? [type, length] : length < 0x100 ? [type, 0x81, length] : [type, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(prefix), content]);
}

/** 1.3.101.112, Ed25519. */
const algorithm = der(tag.sequence, der(tag.oid, Buffer.from("2b6570", "hex")));
/** 2.5.4.3, the common name. */
const commonName = der(tag.oid, Buffer.from("550403", "hex"));
/**
 * Without an end: the key is the identity for as long as it is one. Years before 2050 are written with two digits (RFC
 * 5280, 4.1.2.5).
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
 * The identity that a certificate proves.
 *
 * @param raw the certificate in DER, as TLS gives it; undefined or empty when there was none.
 * @returns 0x and 64 lower-case hex digits; undefined when there is no Ed25519 key in it that can be somebody's.
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
