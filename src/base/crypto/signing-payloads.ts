/**
 * Texts that are signed or hashed, shared by the node and its clients. Runs without Node.js: the caller computes the
 * hash with the means of its platform.
 */

/** Pattern of 32 bytes in text: a hash or a public key. */
export const hex32 = /^0x[0-9a-f]{64}$/;

export const addressForm = /^stor-[0-9a-f]{40}$/;

/**
 * Prefixes of the signed bytes of a TransactionBody and of a BlockHeader. They separate domains: a signature is valid
 * for no other kind of message that the key signs, and for no other format of the chain.
 */
export const transactionPrefix = "gatehouse transaction v2\0";
export const blockPrefix = "gatehouse block v3\0";
export const headPrefix = "gatehouse head v1\0";

export function identityOf(publicKey: string): string {
  return `ed25519:${publicKey}`;
}

/**
 * Returns the text that proves an identity, from the headers as sent. The caller hashes it with SHA-256 and signs the
 * hex digits of the hash. With a network, the text has a prefix, so that the signature is valid for nothing else.
 *
 * @param network value of the header `network`; undefined for the older form, which is valid on every network.
 */
export function identityText(identity: string, timestamp: string, network: string | undefined): string {
  const claim = `${identity}:${timestamp}`;
  return network === undefined ? claim : `gatehouse-identity:${network}:${claim}`;
}

/** Returns the text that an address is the hash of. */
export function addressText(owner: string, name: string, nonce: bigint, salt: string): string {
  return `${owner}:${name}:${nonce}:${salt}`;
}

/**
 * Returns the address of a program: `stor-` and 40 lower-case hex digits.
 *
 * @param digest 64 hex digits: SHA-256 of {@link addressText}.
 */
export function addressOf(digest: string): string {
  return `stor-${digest.slice(0, 40)}`;
}
