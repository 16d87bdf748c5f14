/** Signing payloads of the chain: a prefix that names the kind of payload, followed by the signed bytes. */
import { blockPrefix, headPrefix, transactionPrefix } from "../../base/crypto/signing-payloads.js";

const transactionPrefixBytes = Buffer.from(transactionPrefix, "latin1");
const blockPrefixBytes = Buffer.from(blockPrefix, "latin1");
const headPrefixBytes = Buffer.from(headPrefix, "latin1");

/** Returns the payload that the sender of a transaction signs: the prefix and the encoded TransactionBody. */
export function transactionMessage(body: Uint8Array): Uint8Array {
  return Buffer.concat([transactionPrefixBytes, body]);
}

/** Returns the payload that the proposer of a block signs: the prefix and the encoded BlockHeader. */
export function blockMessage(header: Uint8Array): Uint8Array {
  return Buffer.concat([blockPrefixBytes, header]);
}

/** Returns the payload that an authority signs for its latest block: the prefix and the encoded HeadStatement. */
export function headMessage(statement: Uint8Array): Uint8Array {
  return Buffer.concat([headPrefixBytes, statement]);
}
