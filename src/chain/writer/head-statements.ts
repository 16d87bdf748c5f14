/**
 * Signed heads of authorities. An authority that produces no blocks for a while signs its latest block again, with the
 * current time. Without signed heads, clients could not distinguish an idle network from a node that withholds blocks.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type HeadStatement,
  HeadStatementSchema,
  type SignedHead,
  SignedHeadSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { compileBounds } from "../transactions/bounds.js";
import { verifyEd25519 } from "../../base/crypto/ed25519.js";
import { createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import type { AuthorityKey } from "./block-builder.js";
import { maxAheadMs } from "./blocks.js";
import { headMessage, parse } from "../transactions/transaction.js";
import { noLatestBlock } from "../blocks/retained-blocks.js";
import type { ChainHead } from "../blocks/store-types.js";

export interface HeadStatementsDeps {
  readonly authorities: readonly string[];
  /** Hash of block 0; empty without a genesis. */
  readonly network: string;
  /** Returns the latest block. */
  readonly head: () => ChainHead | undefined;
  readonly nowMs: () => number;
  /**
   * Minimum difference in milliseconds by which a signed head from a peer must be newer than the stored one of the same
   * block. Limits the rate of `onNewer`.
   */
  readonly minGapMs: number;
  /** Called when a newer signed head is stored. */
  readonly onNewer: () => void;
  /** Called for a signed head with the number of the latest block, but another hash. Called once for each number. */
  readonly onContradiction: (statement: HeadStatement) => void;
}

/** Limit on the encoded size of a statement, above the size of its three texts of 66 bytes and two numbers. */
const maxStatementBytes = 512;
/** Limit on the rate of signature verifications for the unsolicited signed heads of one sender. */
const unsolicitedRate = { burst: 4, tokens: 1, everyMs: 1_000 };
/** Limit on senders whose rates are tracked; above the size of the address book. */
const maxSenders = 4_096;

const checkBounds = compileBounds(HeadStatementSchema, "head statement");

export type HeadStatements = ReturnType<typeof createHeadStatements>;

/** Creates the holder of the latest signed head that this process has received or signed. */
export function createHeadStatements(deps: HeadStatementsDeps) {
  const { head, network, minGapMs, onNewer, onContradiction } = deps;
  const verifications = createTokenBuckets(maxSenders);
  let latest: { readonly signed: SignedHead; readonly hash: string; readonly ms: number } | undefined;
  /** Number of the last block for which `onContradiction` was called. */
  let contradictedNumber = -1n;

  const latestMs = (hash: string): number => (latest?.hash === hash ? latest.ms : 0);
  const mayVerify = (from: string | undefined): boolean =>
    from === undefined || verifications.of(from, unsolicitedRate).tryRemoveTokens(1);
  const isNewer = ({ hash, timestampMs }: HeadStatement, byMs: number): boolean =>
    Number(timestampMs) >= latestMs(hash) + byMs;

  /** Returns true if the time of a statement is neither before that of its block nor in the future. */
  const isInTime = ({ timestampMs }: HeadStatement, block: ChainHead): boolean =>
    timestampMs >= block.timestampMs && Number(timestampMs) <= deps.nowMs() + maxAheadMs;

  function store({ statement: bytes, signature }: SignedHead, { hash, timestampMs }: HeadStatement): void {
    // Copied, because the bytes are a view of a complete message, which would stay in memory too.
    const copy = { statement: new Uint8Array(bytes), signature: new Uint8Array(signature) };
    latest = { signed: create(SignedHeadSchema, copy), hash, ms: Number(timestampMs) };
    onNewer();
  }

  return {
    /** Returns the latest signed head if it is about the block with this hash; undefined otherwise. */
    latestSignedHead: (hash: string): SignedHead | undefined => (latest?.hash === hash ? latest.signed : undefined),

    /** Returns the time of that signed head in milliseconds since the epoch; 0 if there is none. */
    latestMs,

    /**
     * Processes a signed head from a peer. Stores it if it is about the latest block and newer than the stored one.
     * Returns its content, whose signature may be unverified.
     *
     * @param from sender of an unsolicited signed head; limits verification to one signature per second, in bursts of up
     * to 4.
     * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE if no honest peer would relay it.
     */
    receive(signed: SignedHead, from?: string): HeadStatement {
      const statement = decodeStatement(signed, deps);
      const block = head();
      if (block === undefined || statement.number !== block.number) {
        // A node that is behind receives the signed head again once it has caught up.
        return statement;
      }
      if (statement.hash !== block.hash) {
        if (contradictedNumber !== block.number && mayVerify(from)) {
          verifySignature(signed, statement);
          contradictedNumber = block.number;
          onContradiction(statement);
        }
      } else if (isInTime(statement, block) && isNewer(statement, minGapMs) && mayVerify(from)) {
        verifySignature(signed, statement);
        store(signed, statement);
      }
      return statement;
    },

    /**
     * Stores a signed head from the block producer; does nothing if it is not newer.
     *
     * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
     */
    accept(signed: SignedHead): void {
      const statement = decodeStatement(signed, deps);
      const block = head();
      if (block === undefined) {
        throw noLatestBlock(network !== "");
      }
      if (statement.number !== block.number || statement.hash !== block.hash) {
        throw new RpcError("INVALID_REQUEST", `The latest block is another one: block ${block.number}, ${block.hash}.`);
      }
      if (!isInTime(statement, block)) {
        throw new RpcError("INVALID_REQUEST", "The statement's time is before that of its block, or in the future.");
      }
      verifySignature(signed, statement);
      if (isNewer(statement, 1)) {
        store(signed, statement);
      }
    },
  };
}

/** Decodes and checks a statement, but not its signature, which takes longer; see {@link verifySignature}. */
function decodeStatement(
  { statement: bytes }: SignedHead,
  { authorities, network }: Pick<HeadStatementsDeps, "authorities" | "network">,
): HeadStatement {
  const statement = parse("head statement", () => {
    if (bytes.length > maxStatementBytes) {
      throw new Error("too long");
    }
    return fromBinary(HeadStatementSchema, bytes);
  });
  checkBounds(statement);
  if (statement.genesisHash !== network) {
    throw new RpcError(
      "INVALID_REQUEST",
      `The head statement is for another network; this node's network is ${network}.`,
    );
  }
  if (!authorities.includes(statement.proposer)) {
    throw new RpcError("INVALID_SIGNATURE", "The head statement is not from an authority of this network.");
  }
  return statement;
}

function verifySignature({ statement: bytes, signature }: SignedHead, { proposer }: HeadStatement): void {
  if (!verifyEd25519(proposer, headMessage(bytes), signature)) {
    throw new RpcError("INVALID_SIGNATURE", "The head statement is not signed by its proposer.");
  }
}

/** Signs a statement that a block is the latest one. */
export function signHead(
  { number, hash, genesisHash }: Pick<ChainHead, "number" | "hash" | "genesisHash">,
  key: AuthorityKey,
  timeMs: number,
): SignedHead {
  const content = { number, hash, genesisHash, timestampMs: BigInt(timeMs), proposer: key.publicKey };
  const statement = toBinary(HeadStatementSchema, create(HeadStatementSchema, content));
  return create(SignedHeadSchema, { statement, signature: key.sign(headMessage(statement)) });
}
