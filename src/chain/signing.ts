/**
 * What the signatures of the chain are over. Each begins with words that say what is signed, so that a signature fits
 * nothing else that its key signs: no other kind of message, and no other format of the chain.
 */
const transactionPrefix = Buffer.from("gatehouse transaction v2\0", "latin1");
const blockPrefix = Buffer.from("gatehouse block v2\0", "latin1");

/** What the sender of a transaction signs: the prefix and the encoded TransactionBody. */
export function transactionMessage(body: Uint8Array): Uint8Array {
  return Buffer.concat([transactionPrefix, body]);
}

/** What the proposer of a block signs: the prefix and the encoded BlockHeader. */
export function blockMessage(header: Uint8Array): Uint8Array {
  return Buffer.concat([blockPrefix, header]);
}
