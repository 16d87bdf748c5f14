/** Headers of blocks, and the statements that a block is the newest. */
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

/** A header that an authority of the network signed. */
export interface CheckedHeader extends SignedHeader {
  readonly fields: BlockHeader;
}

/**
 * Checks a header, except for when it is.
 *
 * @param header an encoded BlockHeader.
 * @throws ProofError malformed, signature, network
 */
export function checkHeader(header: Uint8Array, signature: Uint8Array, network: ProofNetwork): CheckedHeader {
  const fields = readHeader(header);
  const what = `block ${fields.number}`;
  checkSigner({ what, prefix: blockPrefix, content: header, signature, network, ...fields });
  return { number: fields.number, hash: hashOf(header), header, signature, fields };
}

/** What a header says, whoever made it. Throws ProofError malformed. */
export function readHeader(header: Uint8Array): BlockHeader {
  return decode(BlockHeaderSchema, header, "The header of the block");
}

/**
 * Checks that an authority said it.
 *
 * @throws ProofError malformed, signature, network
 */
export function checkSignedHead({ statement, signature }: SignedHead, network: ProofNetwork): HeadStatement {
  const fields = decode(HeadStatementSchema, statement, "The statement that a block is the newest");
  const what = `the statement that block ${fields.number} is the newest`;
  checkSigner({ what, prefix: headPrefix, content: statement, signature, network, ...fields });
  return fields;
}

interface Signed {
  readonly what: string;
  readonly prefix: string;
  readonly content: Uint8Array;
  readonly signature: Uint8Array;
  readonly network: ProofNetwork;
  readonly proposer: string;
  readonly genesisHash: string;
}

function checkSigner({ what, prefix, content, signature, network, proposer, genesisHash }: Signed): void {
  if (!network.authorities.has(proposer) || !isSigned(proposer, prefix, content, signature)) {
    throw new ProofError("signature", `No authority of the network has signed ${what}.`);
  }
  if (genesisHash !== network.genesisHash) {
    throw new ProofError("network", `An authority signed ${what} for another network, ${genesisHash}.`);
  }
}

/** What is encoded. Throws ProofError malformed. */
export function decode<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array, what: string): MessageShape<Desc> {
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    throw new ProofError("malformed", `${what} cannot be read.`, { cause });
  }
}
