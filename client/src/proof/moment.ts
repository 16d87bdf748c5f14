/** Verifies the block of a response, and that it is the latest one. */
import type { GetProofRequest, GetProofResponse } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { emptyHash } from "../../../src/tree/hashes.js";
import { bytesOf } from "./hashing.js";
import { checkHeader, type CheckedHeader, checkSignedHead } from "./headers.js";
import type { ProofNetwork } from "./network.js";
import { ProofError, type SignedHeader } from "./proof-error.js";

/** Trust of the reader: the network, and limits on the age of a response. */
export interface ProofTrust {
  readonly network: ProofNetwork;
  /** Current time in milliseconds since the epoch. */
  readonly nowMs: number;
  /** Limit in seconds on the age of the latest statement by an authority that the block is the latest. */
  readonly maxAgeS: number;
  /** Latest block that was proven before. */
  readonly seen?: SignedHeader | undefined;
}

/** Block of the proven state, after its transactions. */
export interface ProvedBlock {
  readonly number: bigint;
  /** Hash as 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** Time of the block in milliseconds since the epoch. */
  readonly timestampMs: bigint;
  /** Time at which an authority last signed that the block is the latest, as far as the response shows. */
  readonly saidMs: bigint;
  readonly stateRoot: Uint8Array;
  /** Root of the commitment tree; undefined if the block added no commitments. */
  readonly commitmentRoot: string | undefined;
  /** Signed header; undefined for block 0, which has no signature. */
  readonly signed: SignedHeader | undefined;
}

type BlockResponse = Pick<GetProofResponse, "header" | "signature" | "head">;

/**
 * Verifies everything before the paths: signature, network, number, age.
 *
 * @throws ProofError malformed, signature, network, rollback, fork, age, missing
 */
export function checkResponseBlock(request: GetProofRequest, response: BlockResponse, trust: ProofTrust): ProvedBlock {
  const block = response.header.length > 0 ? readBlock(response, trust.network) : blockZero(response, trust.network);
  checkNumber(request, block, trust);
  // The age matters only if the latest block was requested, not a block by its number.
  return request.block === undefined ? checkAge(block, response, trust) : block;
}

function readBlock({ header, signature }: BlockResponse, network: ProofNetwork): ProvedBlock {
  const signed = checkHeader(header, signature, network);
  const { number, hash, fields } = signed;
  if (!hex32.test(fields.stateRoot) || number === 0n) {
    throw new ProofError("malformed", `The header of block ${number} has no root of the state.`);
  }
  const { timestampMs, commitmentRoot } = fields;
  const stateRoot = bytesOf(fields.stateRoot);
  return { number, hash, timestampMs, saidMs: timestampMs, stateRoot, commitmentRoot, signed: withoutFields(signed) };
}

function withoutFields({ number, hash, header, signature }: CheckedHeader): SignedHeader {
  return { number, hash, header, signature };
}

function blockZero({ signature }: BlockResponse, { genesisHash, timestampMs }: ProofNetwork): ProvedBlock {
  if (signature.length > 0) {
    throw new ProofError("malformed", "The response has a signature, but no header.");
  }
  const stateRoot = emptyHash;
  const nothing = { commitmentRoot: undefined, signed: undefined };
  return { number: 0n, hash: genesisHash, timestampMs, saidMs: timestampMs, stateRoot, ...nothing };
}

function checkNumber(request: GetProofRequest, { number, signed }: ProvedBlock, { seen }: ProofTrust): void {
  if (request.block !== undefined && number !== request.block) {
    throw new ProofError("missing", `The response is for block ${number}, not for block ${request.block}.`);
  }
  if (seen === undefined) {
    return;
  }
  if (request.block === undefined && number < seen.number) {
    throw new ProofError(
      "rollback",
      `The node responds with the state of block ${number}, but this client has seen block ${seen.number}.`,
    );
  }
  requireOneChain(signed, seen);
}

/** Throws ProofError fork, with both headers as evidence, if two headers have one number and different hashes. */
export function requireOneChain(header: SignedHeader | undefined, seen: SignedHeader | undefined): void {
  if (header !== undefined && header.number === seen?.number && header.hash !== seen.hash) {
    const { number, hash } = header;
    throw new ProofError("fork", `There are two blocks ${number}, both signed: ${seen.hash} and ${hash}.`, {
      evidence: [seen, header],
    });
  }
}

function checkAge(block: ProvedBlock, { head }: BlockResponse, { network, nowMs, maxAgeS }: ProofTrust): ProvedBlock {
  if (head === undefined && block.signed === undefined) {
    throw new ProofError("age", "Block 0 has no signature, and the response has no statement that it is the latest.");
  }
  const signedHead = head && checkSignedHead(head, network);
  if (signedHead !== undefined && (signedHead.number !== block.number || signedHead.hash !== block.hash)) {
    throw new ProofError(
      "missing",
      `The authority's statement is about block ${signedHead.number}, not about this block.`,
    );
  }
  const isHeadLater = signedHead !== undefined && (signedHead.timestampMs > block.saidMs || block.signed === undefined);
  const saidMs = isHeadLater ? signedHead.timestampMs : block.saidMs;
  const ageMs = nowMs - Number(saidMs);
  if (Math.abs(ageMs) > maxAgeS * 1000) {
    const seconds = Math.round(Math.abs(ageMs) / 1000);
    const when = ageMs > 0 ? `${seconds} s ago` : `${seconds} s in the future, by the local clock`;
    throw new ProofError(
      "age",
      `The last statement of an authority that block ${block.number} is the latest was signed ${when}; the maximum age is ${maxAgeS} s.`,
    );
  }
  return { ...block, saidMs };
}
