/**
 * What is signed and hashed, as texts, for both ends: the node, and clients wherever they run. So nothing here needs
 * Node.js; who hashes does it with what there is.
 */

/** Form of 32 bytes in text: a hash, or a public key. */
export const hex32 = /^0x[0-9a-f]{64}$/;

/** The form of a storage program's address. */
export const addressForm = /^stor-[0-9a-f]{40}$/;

/**
 * Before the bytes of a TransactionBody and of a BlockHeader where they are signed. The words say what is signed, so
 * that a signature fits nothing else that its key signs: no other kind of message, and no other format of the chain.
 */
export const transactionPrefix = "gatehouse transaction v2\0";
export const blockPrefix = "gatehouse block v3\0";
/** Before the bytes of a HeadStatement where they are signed. */
export const headPrefix = "gatehouse head v1\0";

/** The header `identity` of whoever has this key. */
export function identityOf(publicKey: string): string {
  return `ed25519:${publicKey}`;
}

/**
 * The text of whose SHA-256 a caller signs the hex digits, from the headers as they are sent. What names its network
 * begins with a word of its own, so that its signature fits nothing else that the same key signs.
 *
 * @param network value of the header `network`; undefined for the older form, which holds on every network.
 */
export function identityText(identity: string, timestamp: string, network: string | undefined): string {
  const claim = `${identity}:${timestamp}`;
  return network === undefined ? claim : `gatehouse-identity:${network}:${claim}`;
}

/** The text that the address of a program is made of. */
export function addressText(owner: string, name: string, nonce: bigint, salt: string): string {
  return `${owner}:${name}:${nonce}:${salt}`;
}

/**
 * Address of a program: `stor-` and 40 lower-case hex digits.
 *
 * @param digest 64 hex digits: SHA-256 of {@link addressText}.
 */
export function addressOf(digest: string): string {
  return `stor-${digest.slice(0, 40)}`;
}
