/**
 * What authorities say of the newest block. One that makes no blocks for a while signs anew which is its newest, and when it
 * said so; without that, nobody could tell an idle network from a head that is held back.
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
import { maxAheadMs, type SealingKey } from "./blocks.js";
import { headMessage } from "../transactions/signing.js";
import type { ChainHead } from "../blocks/store.js";

export interface HeadStatementsDeps {
  readonly authorities: readonly string[];
  /** Hash of block 0. */
  readonly network: string;
  /** The newest block. */
  readonly head: () => ChainHead | undefined;
  readonly nowMs: () => number;
  /** What a peer passes on about the same block is of use when it is newer by so much: more often nobody is told of it. */
  readonly leastGapMs: number;
  /** Hears that there is a newer statement. */
  readonly onNewer: () => void;
  /** Hears of a statement that was signed, about another block with the number of the newest one; once for each number. */
  readonly onContradiction: (statement: HeadStatement) => void;
}

/** What was heard since this process began: the newest is kept. */
export interface HeadStatements {
  /** The newest statement about the block with this hash; undefined where that is not what was said last. */
  newestStatement(hash: string): SignedHead | undefined;
  /** Its time, in milliseconds since the epoch; 0 where there is none. */
  newestMs(hash: string): number;
  /**
   * Hears of a statement that a peer passes on, and keeps it if it is about the newest block, and newer. Gives what it says,
   * which need not be true.
   *
   * @param from who sent it without being asked; his are looked at once a second.
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE for one that no honest peer passes on.
   */
  hear(signed: SignedHead, from?: string): HeadStatement;
  /**
   * Takes a statement from whoever makes the blocks; one that is no newer changes nothing.
   *
   * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE, STATE_NOT_READY
   */
  take(signed: SignedHead): void;
}

/** What a statement takes, encoded, roomily: three texts of 66 bytes, two numbers. */
const maxStatementBytes = 512;
/** How many signatures of one sender are verified that nobody asked for. */
const unaskedChecks: BucketRate = { burst: 4, tokens: 1, everyMs: 1_000 };
/** Most senders whose rates are remembered: more than the address book holds. */
const maxSenders = 4_096;

const findInStatement = compileBounds(HeadStatementSchema, "head statement");

export function createHeadStatements(deps: HeadStatementsDeps): HeadStatements {
  const { head, leastGapMs, onNewer, onContradiction } = deps;
  const checks = createTokenBuckets(maxSenders);
  let newest: { readonly signed: SignedHead; readonly hash: string; readonly ms: number } | undefined;
  let contradicted = -1n;

  const newestMs = (hash: string): number => (newest?.hash === hash ? newest.ms : 0);
  const mayCheck = (from: string | undefined): boolean =>
    from === undefined || checks.of(from, unaskedChecks).tryRemoveTokens(1);
  const isNewer = ({ hash, timestampMs }: HeadStatement, byMs: number): boolean =>
    Number(timestampMs) >= newestMs(hash) + byMs;

  function keep({ statement: bytes, signature }: SignedHead, { hash, timestampMs }: HeadStatement): void {
    // A copy: its bytes are part of those of a whole message, which would be kept with them.
    const copy = { statement: new Uint8Array(bytes), signature: new Uint8Array(signature) };
    newest = { signed: create(SignedHeadSchema, copy), hash, ms: Number(timestampMs) };
    onNewer();
  }

  return {
    newestStatement: (hash) => (newest?.hash === hash ? newest.signed : undefined),
    newestMs,
    hear(signed, from) {
      const statement = readStatement(signed, deps);
      const at = head();
      if (at === undefined || statement.number !== at.number) {
        // A node that is behind hears of it again, once it is there.
        return statement;
      }
      if (statement.hash !== at.hash) {
        if (contradicted !== at.number && mayCheck(from)) {
          verify(signed, statement);
          contradicted = at.number;
          onContradiction(statement);
        }
      } else if (isInTime(statement, at, deps) && isNewer(statement, leastGapMs) && mayCheck(from)) {
        verify(signed, statement);
        keep(signed, statement);
      }
      return statement;
    },
    take(signed) {
      const statement = readStatement(signed, deps);
      const at = head();
      if (at === undefined) {
        throw new RpcError("STATE_NOT_READY", "The node has no chain yet; start it with --genesis FILE.");
      }
      if (statement.number !== at.number || statement.hash !== at.hash) {
        throw new RpcError("INVALID_REQUEST", `The newest block is another one: block ${at.number}, ${at.hash}.`);
      }
      if (!isInTime(statement, at, deps)) {
        throw new RpcError("INVALID_REQUEST", "The statement's time is before that of its block, or in the future.");
      }
      verify(signed, statement);
      if (isNewer(statement, 1)) {
        keep(signed, statement);
      }
    },
  };
}

/** Reads what a statement says; whether it was signed is for {@link verify} to say, which takes longer. */
function readStatement(
  { statement: bytes }: SignedHead,
  { authorities, network }: Pick<HeadStatementsDeps, "authorities" | "network">,
): HeadStatement {
  const statement = bytes.length > maxStatementBytes ? undefined : parse(bytes);
  if (statement === undefined) {
    throw new RpcError("INVALID_REQUEST", "The head statement cannot be read.");
  }
  const found = findInStatement(statement);
  if (found !== undefined) {
    throw new RpcError("INVALID_REQUEST", found);
  }
  if (statement.genesisHash !== network) {
    throw new RpcError("INVALID_REQUEST", `The head statement is of another network; this one is ${network}.`);
  }
  if (!authorities.includes(statement.proposer)) {
    throw new RpcError("INVALID_SIGNATURE", "The head statement is of no authority of this network.");
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

/** Says that a block is the newest one. */
export function signHead(
  { number, hash, genesisHash }: Pick<ChainHead, "number" | "hash" | "genesisHash">,
  key: SealingKey,
  timeMs: number,
): SignedHead {
  const said = { number, hash, genesisHash, timestampMs: BigInt(timeMs), proposer: key.publicKey };
  const statement = toBinary(HeadStatementSchema, create(HeadStatementSchema, said));
  return create(SignedHeadSchema, { statement, signature: key.sign(headMessage(statement)) });
}
