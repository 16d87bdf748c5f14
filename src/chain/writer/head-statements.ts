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
import { type BucketRate, createTokenBuckets } from "../../base/limits/token-buckets.js";
import { RpcError } from "../../rpc/errors.js";
import { maxAheadMs, type AuthorityKey } from "./blocks.js";
import { headMessage } from "../transactions/signing.js";
import { noLatestBlock } from "../blocks/no-latest-block.js";
import type { ChainHead } from "../blocks/store.js";

export interface HeadStatementsDeps {
  readonly authorities: readonly string[];
  /** Hash of block 0; empty without a genesis. */
  readonly network: string;
  /** Returns the latest block. */
  readonly head: () => ChainHead | undefined;
  readonly nowMs: () => number;
  /**
   * Minimum age difference at which a signed head from a peer replaces another one of the same block. Limits the
   * notifications.
   */
  readonly minGapMs: number;
  /** Called when a newer signed head is stored. */
  readonly onNewer: () => void;
  /** Called for a signed head that has the number of the latest block but another hash; once for each number. */
  readonly onContradiction: (statement: HeadStatement) => void;
}

/** Latest signed head since the process started. */
export interface HeadStatements {
  /** Returns the latest signed head if it is about the block with this hash; undefined otherwise. */
  latestSignedHead(hash: string): SignedHead | undefined;
  /** Returns the time of that signed head in milliseconds since the epoch; 0 if there is none. */
  latestMs(hash: string): number;
  /**
   * Processes a signed head from a peer. Stores it if it is about the latest block and newer than the stored one.
   * Returns its content, whose signature may be unverified.
   *
   * @param from sender of an unsolicited signed head; limits verification to one signature per second, in bursts of up
   * to 4.
   * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE if no honest peer would relay it.
   */
  receive(signed: SignedHead, from?: string): HeadStatement;
  /**
   * Stores a signed head from the block producer; does nothing if it is not newer.
   *
   * @throws RpcError INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  accept(signed: SignedHead): void;
}

/** Generous limit on the encoded size of a statement: three texts of 66 bytes and two numbers. */
const maxStatementBytes = 512;
/** Rate of verified signatures for unsolicited signed heads of one sender. */
const unaskedChecks: BucketRate = { burst: 4, tokens: 1, everyMs: 1_000 };
/** Limit on senders whose rates are stored; above the size of the address book. */
const maxSenders = 4_096;

const findInStatement = compileBounds(HeadStatementSchema, "head statement");

export function createHeadStatements(deps: HeadStatementsDeps): HeadStatements {
  const { head, network, minGapMs, onNewer, onContradiction } = deps;
  const checks = createTokenBuckets(maxSenders);
  let latest: { readonly signed: SignedHead; readonly hash: string; readonly ms: number } | undefined;
  let contradicted = -1n;

  const latestMs = (hash: string): number => (latest?.hash === hash ? latest.ms : 0);
  const mayCheck = (from: string | undefined): boolean =>
    from === undefined || checks.of(from, unaskedChecks).tryRemoveTokens(1);
  const isNewer = ({ hash, timestampMs }: HeadStatement, byMs: number): boolean =>
    Number(timestampMs) >= latestMs(hash) + byMs;

  function store({ statement: bytes, signature }: SignedHead, { hash, timestampMs }: HeadStatement): void {
    // Copied, because the bytes are a view of a complete message, which would stay in memory too.
    const copy = { statement: new Uint8Array(bytes), signature: new Uint8Array(signature) };
    latest = { signed: create(SignedHeadSchema, copy), hash, ms: Number(timestampMs) };
    onNewer();
  }

  return {
    latestSignedHead: (hash) => (latest?.hash === hash ? latest.signed : undefined),
    latestMs,
    receive(signed, from) {
      const statement = readStatement(signed, deps);
      const at = head();
      if (at === undefined || statement.number !== at.number) {
        // A node that is behind receives the signed head again once it has caught up.
        return statement;
      }
      if (statement.hash !== at.hash) {
        if (contradicted !== at.number && mayCheck(from)) {
          verify(signed, statement);
          contradicted = at.number;
          onContradiction(statement);
        }
      } else if (isInTime(statement, at, deps) && isNewer(statement, minGapMs) && mayCheck(from)) {
        verify(signed, statement);
        store(signed, statement);
      }
      return statement;
    },
    accept(signed) {
      const statement = readStatement(signed, deps);
      const at = head();
      if (at === undefined) {
        throw noLatestBlock(network !== "");
      }
      if (statement.number !== at.number || statement.hash !== at.hash) {
        throw new RpcError("INVALID_REQUEST", `The latest block is another one: block ${at.number}, ${at.hash}.`);
      }
      if (!isInTime(statement, at, deps)) {
        throw new RpcError("INVALID_REQUEST", "The statement's time is before that of its block, or in the future.");
      }
      verify(signed, statement);
      if (isNewer(statement, 1)) {
        store(signed, statement);
      }
    },
  };
}

/** Decodes and checks a statement. Does not check the signature, which is slower; see {@link verify}. */
function readStatement(
  { statement: bytes }: SignedHead,
  { authorities, network }: Pick<HeadStatementsDeps, "authorities" | "network">,
): HeadStatement {
  const statement = bytes.length > maxStatementBytes ? undefined : parse(bytes);
  if (statement === undefined) {
    throw new RpcError("INVALID_REQUEST", "The head statement cannot be decoded.");
  }
  const found = findInStatement(statement);
  if (found !== undefined) {
    throw new RpcError("INVALID_REQUEST", found);
  }
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

function parse(bytes: Uint8Array): HeadStatement | undefined {
  try {
    return fromBinary(HeadStatementSchema, bytes);
  } catch {
    return undefined;
  }
}

function isInTime(
  { timestampMs }: HeadStatement,
  at: Pick<ChainHead, "timestampMs">,
  { nowMs }: Pick<HeadStatementsDeps, "nowMs">,
): boolean {
  return timestampMs >= at.timestampMs && Number(timestampMs) <= nowMs() + maxAheadMs;
}

function verify({ statement: bytes, signature }: SignedHead, { proposer }: HeadStatement): void {
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
