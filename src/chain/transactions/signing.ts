/** What the signatures of the chain are over: words that say what is signed, and the bytes of it. */
import { blockPrefix, headPrefix, transactionPrefix } from "../../base/crypto/signing-payloads.js";

const beforeTransaction = Buffer.from(transactionPrefix, "latin1");
const beforeBlock = Buffer.from(blockPrefix, "latin1");
const beforeHead = Buffer.from(headPrefix, "latin1");

/** What the sender of a transaction signs: the prefix and the encoded TransactionBody. */
export function transactionMessage(body: Uint8Array): Uint8Array {
  return Buffer.concat([beforeTransaction, body]);
}

/** What the proposer of a block signs: the prefix and the encoded BlockHeader. */
export function blockMessage(header: Uint8Array): Uint8Array {
  return Buffer.concat([beforeBlock, header]);
}

/** What an authority signs to say which block is its newest: the prefix and the encoded HeadStatement. */
export function headMessage(statement: Uint8Array): Uint8Array {
  return Buffer.concat([beforeHead, statement]);
}
