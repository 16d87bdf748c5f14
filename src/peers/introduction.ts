/**
 * Introductions: what a node says of itself, signed together with a challenge of the node that it speaks to, so that
 * nobody can say it again. A status in it cannot claim a block that no authority has signed.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  type Introduction,
  IntroductionSchema,
  type SignedIntroduction,
  type SignedIntroductionSchema,
  type Status,
} from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { verifyEd25519 } from "../base/ed25519.js";
import { Failure } from "../rpc/errors.js";
import { hex32, sha256 } from "../base/hash.js";

/** What is signed begins with this, so that a signature of it fits nothing else that a node signs. */
const signedPrefix = Buffer.from("gatehouse introduction v1\0", "latin1");
const maxIntroductionBytes = 4_096;

/** The newest block of a node, as an authority signed it. */
export interface Head {
  readonly number: bigint;
  /** 0x and 64 lower-case hex digits. */
  readonly hash: string;
}

/** How far a node is, as it was proved. */
export interface ReadStatus {
  readonly head: Head;
  readonly accepting: boolean;
}

/** Signs with the key of a node. */
export interface IntroductionKey {
  /** 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Says what this node is, to whoever gave the challenge. */
export function introduce(
  key: IntroductionKey,
  said: Omit<MessageInitShape<typeof IntroductionSchema>, "identity">,
): MessageInitShape<typeof SignedIntroductionSchema> {
  const introduction = toBinary(
    IntroductionSchema,
    create(IntroductionSchema, { ...said, identity: key.publicKey } as MessageInitShape<typeof IntroductionSchema>),
  );
  return { introduction, signature: key.sign(Buffer.concat([signedPrefix, introduction])) };
}

/**
 * Reads an introduction whose signature is that of the identity in it. Whether its challenge is fresh is for the caller
 * to say.
 *
 * @throws Failure INVALID_REQUEST, INVALID_SIGNATURE
 */
export function readIntroduction(signed: SignedIntroduction | undefined): Introduction {
  if (signed === undefined || signed.introduction.length > maxIntroductionBytes) {
    throw new Failure("INVALID_REQUEST", "There is no introduction, or one that is too long.");
  }
  let introduction: Introduction;
  try {
    introduction = fromBinary(IntroductionSchema, signed.introduction);
  } catch {
    throw new Failure("INVALID_REQUEST", "The introduction cannot be read.");
  }
  const { identity } = introduction;
  const bytes = Buffer.concat([signedPrefix, signed.introduction]);
  if (!hex32.test(identity) || !verifyEd25519(identity, bytes, signed.signature)) {
    throw new Failure("INVALID_SIGNATURE", "The introduction is not signed by the identity that it names.");
  }
  return introduction;
}

/** Reads the header of a block that its proposer signed. Throws a Failure for any other. */
export type ReadHeader = (signed: { readonly header: Uint8Array; readonly signature: Uint8Array }) => {
  readonly number: bigint;
  readonly proposer: string;
};

/** What statuses are read against. */
export interface StatusReaderParts {
  readonly readHeader: ReadHeader;
  readonly authorities: readonly string[];
  readonly genesisHash: string;
}

/** Heads that were verified: peers have the same one most of the time. */
const maxKnownHeads = 32;

/**
 * Builds the function that reads a status.
 *
 * It throws Failure INVALID_SIGNATURE when the head is none that an authority has signed.
 */
export function createStatusReader({ readHeader, authorities, genesisHash }: StatusReaderParts) {
  const known = new Map<string, Head>();

  function readHead({ headHeader, headSignature }: Status): Head {
    if (headHeader.length === 0) {
      return { number: 0n, hash: genesisHash };
    }
    const proof = sha256(Buffer.concat([headHeader, headSignature]));
    let head = known.get(proof);
    if (head === undefined) {
      const { number, proposer } = readHeader({ header: headHeader, signature: headSignature });
      if (!authorities.includes(proposer)) {
        throw new Failure("INVALID_SIGNATURE", "The head was signed by no authority of this network.");
      }
      head = { number, hash: sha256(headHeader) };
      if (known.size >= maxKnownHeads) {
        known.delete(known.keys().next().value!);
      }
      known.set(proof, head);
    }
    return head;
  }

  return (status: Status): ReadStatus => ({ head: readHead(status), accepting: status.accepting });
}

/** Challenges that only whoever made them can know, without remembering any that was not used. */
export interface Challenges {
  make(): Uint8Array;
  /**
   * Uses a challenge up.
   *
   * @throws Failure INVALID_SIGNATURE when it is none of ours, too old, or used; RATE_LIMITED when too many are.
   */
  spend(challenge: Uint8Array): void;
}

const challengeGoodForMs = 30_000;
const maxSpent = 10_000;

/** Builds a maker of challenges. */
export function createChallenges(nowMs: () => number): Challenges {
  const secret = randomBytes(32);
  /** Used ones, oldest first, with the time after which they are too old anyhow. */
  const spent = new Map<string, number>();

  const seal = (body: Uint8Array): Buffer => createHmac("sha256", secret).update(body).digest().subarray(0, 16);

  function isOurs(challenge: Uint8Array): boolean {
    return challenge.length === 40 && timingSafeEqual(seal(challenge.subarray(0, 24)), challenge.subarray(24));
  }

  function forgetOld(): void {
    for (const [challenge, untilMs] of spent) {
      if (untilMs > nowMs()) {
        break;
      }
      spent.delete(challenge);
    }
  }

  return {
    make() {
      const body = randomBytes(24);
      body.writeBigInt64BE(BigInt(nowMs()));
      return Buffer.concat([body, seal(body)]);
    },
    spend(challenge) {
      forgetOld();
      const name = Buffer.from(challenge).toString("base64");
      const madeMs = isOurs(challenge) ? Number(Buffer.from(challenge).readBigInt64BE()) : -Infinity;
      if (madeMs + challengeGoodForMs < nowMs() || spent.has(name)) {
        throw new Failure("INVALID_SIGNATURE", "The challenge is not one that this node gave in the last 30 seconds.");
      }
      if (spent.size >= maxSpent) {
        throw new Failure("RATE_LIMITED", "Too many nodes introduce themselves; try again in 30 s.", 30);
      }
      spent.set(name, nowMs() + challengeGoodForMs);
    },
  };
}
