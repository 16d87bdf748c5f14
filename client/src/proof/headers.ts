/** Verification of block headers, and of statements that a block is the latest (signed heads). */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import {
  type BlockHeader,
  BlockHeaderSchema,
  type HeadStatement,
  HeadStatementSchema,
  type SignedHead,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { blockPrefix, headPrefix } from "../../../src/base/crypto/signing-payloads.js";
import { hashOf, isSigned } from "./hashing.js";
import type { ProofNetwork } from "./network.js";
import { ProofError, type SignedHeader } from "./proof-error.js";

/** Header that an authority of the network signed. */
export interface CheckedHeader extends SignedHeader {
  readonly fields: BlockHeader;
}

/**
 * Verifies a header, except its age.
 *
 * @param header encoded BlockHeader.
 * @throws ProofError malformed, signature, network
 */
export function checkHeader(header: Uint8Array, signature: Uint8Array, network: ProofNetwork): CheckedHeader {
  const fields = readHeader(header);
  const subject = `block ${fields.number}`;
  checkSigner({ subject, prefix: blockPrefix, content: header, signature, network, ...fields });
  return { number: fields.number, hash: hashOf(header), header, signature, fields };
}

/** Decodes a header without verifying its signature. Throws ProofError malformed. */
export function readHeader(header: Uint8Array): BlockHeader {
  return decode(BlockHeaderSchema, header, "The header of the block");
}

/**
 * Verifies that an authority signed a head.
 *
 * @throws ProofError malformed, signature, network
 */
export function checkSignedHead({ statement, signature }: SignedHead, network: ProofNetwork): HeadStatement {
  const fields = decode(HeadStatementSchema, statement, "The statement that a block is the latest");
  const subject = `the statement that block ${fields.number} is the latest`;
  checkSigner({ subject, prefix: headPrefix, content: statement, signature, network, ...fields });
  return fields;
}

interface Signed {
  readonly subject: string;
  readonly prefix: string;
  readonly content: Uint8Array;
  readonly signature: Uint8Array;
  readonly network: ProofNetwork;
  readonly proposer: string;
  readonly genesisHash: string;
}

function checkSigner({ subject, prefix, content, signature, network, proposer, genesisHash }: Signed): void {
  if (!network.authorities.has(proposer) || !isSigned(proposer, prefix, content, signature)) {
    throw new ProofError("signature", `No authority of the network has signed ${subject}.`);
  }
  if (genesisHash !== network.genesisHash) {
    throw new ProofError("network", `An authority signed ${subject} for another network, ${genesisHash}.`);
  }
}

/** Decodes a message. Throws ProofError malformed. */
export function decode<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array, subject: string): MessageShape<Desc> {
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    throw new ProofError("malformed", `${subject} cannot be decoded.`, { cause });
  }
}
