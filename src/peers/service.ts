/** The peer service: what other nodes may ask of this one. */
import { TransactionStatus } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import type { Transaction } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type { Introduction, PeerService, Status } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { Failure, toFailure } from "../rpc/errors.js";
import type { Implementation } from "../rpc/service.js";
import type { Acquaint, Self } from "./acquaint.js";
import { checkHost, type EndpointPolicy, parseConnectionString, parseEndpoint } from "./endpoint.js";
import { type Challenges, introduce, readIntroduction, type ReadStatus } from "./introduction.js";
import { isStranger } from "./peer.js";
import type { PeerBook } from "./peer-book.js";
import { maxRelayed } from "./relay.js";

/** What became of a transaction that was handed on. */
export type RelayFate =
  { readonly status: "pending" | "included" } | { readonly status: "rejected"; readonly reason: string };

/** What the service needs. */
export interface PeerServiceParts {
  readonly self: Self;
  readonly book: PeerBook;
  readonly acquaint: Pick<Acquaint, "ask">;
  readonly policy: EndpointPolicy;
  readonly challenges: Challenges;
  readonly readStatus: (status: Status) => ReadStatus;
  /** Takes a transaction of a peer. Throws a Failure when it cannot be taken. */
  readonly takeTransaction: (transaction: Transaction) => Promise<RelayFate>;
  /**
   * Hears that a verified peer told how far it is. Resolves when this node has caught up with that, or soon if that
   * takes long, so that the answer says how far it is then.
   */
  readonly onStatus: () => Promise<void>;
  /** Hears of an error that is this node's own, and none of a transaction's. */
  readonly onError: (error: unknown) => void;
}

/** Most peers that are told of in one answer. */
const maxTold = 50;
/** Most callers whose endpoints are asked at once; the others are asked in their turn. */
const maxAskedBack = 8;
const challengeBytes = { least: 16, most: 64 };

const statuses = {
  pending: TransactionStatus.PENDING,
  included: TransactionStatus.INCLUDED,
  rejected: TransactionStatus.REJECTED,
} as const;

/** Builds the service. */
export function createPeerService(parts: PeerServiceParts): Implementation<typeof PeerService> {
  const { self, book, acquaint, policy, challenges, readStatus, takeTransaction, onStatus, onError } = parts;
  let askedBack = 0;

  function needGenesis(): string {
    if (self.genesisHash === undefined) {
      throw new Failure("STATE_NOT_READY", "The node has no genesis block yet.");
    }
    return self.genesisHash;
  }

  /** What an introduction says, as far as it can be believed. */
  function check(introduction: Introduction, provenIdentity: string | undefined) {
    const { identity, endpoint, connectionString, status } = introduction;
    challenges.spend(introduction.challenge);
    if (policy.tls && provenIdentity !== identity) {
      throw new Failure("INVALID_SIGNATURE", "The identity is not that of the TLS connection.");
    }
    if (introduction.genesisHash !== needGenesis()) {
      throw new Failure("PERMISSION_DENIED", "The caller belongs to another network: its genesis differs.");
    }
    if (identity === self.key.publicKey) {
      throw new Failure("PERMISSION_DENIED", "It is this node itself.");
    }
    const announced = parseEndpoint(endpoint, policy);
    if (announced === self.endpoint()) {
      throw new Failure("INVALID_REQUEST", "The caller names this node's own address as its endpoint.");
    }
    checkHost(announced, policy);
    checkHost(parseConnectionString(connectionString), policy);
    if (status === undefined) {
      throw new Failure("INVALID_REQUEST", "The caller does not say how far it is.");
    }
    const held = book.whyHeldElsewhere(identity, announced);
    if (held !== undefined) {
      throw new Failure("PERMISSION_DENIED", held);
    }
    return { identity, announced, status: readStatus(status) };
  }

  /** What was refused is shown, unless the address is that of a peer who has nothing to do with it. */
  function showRefusal(introduction: Introduction, refusal: Failure): void {
    const endpoint = callableEndpoint(introduction.endpoint);
    const known = endpoint === undefined ? undefined : book.get(endpoint);
    const isFree = endpoint !== self.endpoint() && (known === undefined || isStranger(known));
    if (endpoint !== undefined && isFree && book.hear(endpoint, "hello")) {
      book.recordRefusal(endpoint, refusal.message);
    }
  }

  /** Undefined for an address that nobody can be shown by. */
  function callableEndpoint(text: string): string | undefined {
    try {
      const endpoint = parseEndpoint(text, policy);
      checkHost(endpoint, policy);
      return endpoint;
    } catch (error) {
      if (error instanceof Failure) {
        return undefined;
      }
      throw error;
    }
  }

  async function askBack(endpoint: string): Promise<void> {
    if (askedBack < maxAskedBack) {
      askedBack++;
      await acquaint.ask(endpoint, maxTold);
      askedBack--;
    }
  }

  return {
    getChallenge: () => ({ genesisHash: needGenesis(), challenge: challenges.make() }),

    hello({ introduction: signed, challenge }, { caller }) {
      if (challenge.length < challengeBytes.least || challenge.length > challengeBytes.most) {
        throw new Failure("INVALID_REQUEST", "The challenge must have 16 to 64 bytes.");
      }
      const introduction = readIntroduction(signed);
      try {
        const { identity, announced, status } = check(introduction, caller.identity);
        const known = book.verified(identity);
        if (known?.online === true) {
          book.recordStatus(known.endpoint, status);
          void onStatus();
        } else if (book.hear(announced, "hello")) {
          void askBack(announced);
        }
      } catch (error) {
        if (error instanceof Failure) {
          showRefusal(introduction, error);
        }
        throw error;
      }
      return {
        introduction: introduce(self.key, {
          challenge,
          genesisHash: needGenesis(),
          connectionString: self.connectionString(),
          endpoint: self.endpoint(),
          status: self.status(),
          version: self.version,
        }),
        peers: book.sample(maxTold, introduction.identity),
      };
    },

    async exchangeStatus({ status, maxPeers }, { caller }) {
      needGenesis();
      const known = caller.identity === undefined ? undefined : book.verified(caller.identity);
      if (known !== undefined && status !== undefined) {
        if (known.online) {
          book.recordStatus(known.endpoint, readStatus(status));
          await onStatus();
        } else if (book.hear(known.endpoint, "hello")) {
          void askBack(known.endpoint);
        }
      }
      return {
        status: self.status(),
        knowsCaller: known !== undefined,
        peers: maxPeers === 0 ? [] : book.sample(Math.min(maxPeers, maxTold), caller.identity ?? ""),
      };
    },

    async relayTransactions({ transactions }) {
      if (transactions.length > maxRelayed) {
        throw new Failure("INVALID_REQUEST", `At most ${maxRelayed} transactions are taken at once.`);
      }
      const outcomes = [];
      for (const transaction of transactions) {
        outcomes.push(await outcomeOf(transaction));
      }
      return { outcomes };
    },
  };

  async function outcomeOf(transaction: Transaction) {
    try {
      const fate = await takeTransaction(transaction);
      return { status: statuses[fate.status], reason: fate.status === "rejected" ? fate.reason : "" };
    } catch (error) {
      const failure = toFailure(error);
      if (failure !== error && failure.reason === "INTERNAL_ERROR") {
        onError(error);
      }
      return {
        status: failure.kind.transient ? TransactionStatus.UNSPECIFIED : TransactionStatus.REJECTED,
        reason: failure.message,
      };
    }
  }
}
