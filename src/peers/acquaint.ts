/**
 * Asks peers: one that has not introduced itself is met first, with a Hello in which both sides prove who they are; of
 * the others it is asked how far they are. Either way the peer learns the same of this node.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { randomBytes } from "node:crypto";
import { type KnownPeer, PeerService, type Status, type StatusSchema } from "../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../rpc/channel.js";
import { Failure } from "../rpc/errors.js";
import type { PeerClient } from "./client.js";
import { checkHost, type EndpointPolicy, parseConnectionString, parseEndpoint } from "./endpoint.js";
import { introduce, type IntroductionKey, readIntroduction, type ReadStatus } from "./introduction.js";
import type { PeerBook } from "./peer-book.js";

/** What this node is, to others. */
export interface Self {
  readonly key: IntroductionKey;
  /** Hash of block 0; undefined while there is none, and then nobody can be met. */
  readonly genesisHash: string | undefined;
  readonly version: string;
  /** Where clients reach it. */
  connectionString(): string;
  /** Where nodes reach it. */
  endpoint(): string;
  status(): MessageInitShape<typeof StatusSchema>;
}

/** What asking needs. */
export interface AcquaintParts {
  readonly self: Self;
  readonly book: PeerBook;
  readonly client: PeerClient;
  readonly policy: EndpointPolicy;
  readonly readStatus: (status: Status) => ReadStatus;
  readonly nowMs: () => number;
  /** Hears when a peer has proved who it is. */
  readonly onVerified: (endpoint: string) => void;
  /** Hears of an error that is this node's own, and none of a peer's. */
  readonly onError: (error: unknown) => void;
}

/** Asks peers. */
export interface Acquaint {
  /**
   * Asks a peer and records what comes of it. Never rejects, and asks nobody twice at a time.
   *
   * @param maxPeers how many others the peer is asked for.
   */
  ask(endpoint: string, maxPeers: number): Promise<void>;
  /** The asking of a peer that is under way. */
  underWay(endpoint: string): Promise<void> | undefined;
}

/** An introduction is asked for again after this. */
const introducedForMs = 600_000;
/** And by a peer that does not know this node, after this. */
const helloAgainAfterMs = 30_000;
/** Most addresses that are believed of one answer. */
const maxHeard = 50;

/** Builds it. */
export function createAcquaint(parts: AcquaintParts): Acquaint {
  const { self, book, client, policy, readStatus, nowMs, onVerified, onError } = parts;
  const underWay = new Map<string, Promise<void>>();

  async function meet(endpoint: string, genesisHash: string): Promise<void> {
    const asked = await client.call(endpoint, PeerService.method.getChallenge, {});
    if (asked.genesisHash !== genesisHash) {
      book.recordRefusal(endpoint, "The peer belongs to another network: its genesis differs.");
      return;
    }
    if (client.identityOf(endpoint) === self.key.publicKey) {
      book.recordRefusal(endpoint, "It is this node itself.");
      return;
    }
    const challenge = randomBytes(32);
    const { introduction: signed, peers } = await client.call(endpoint, PeerService.method.hello, {
      introduction: introduce(self.key, {
        challenge: asked.challenge,
        genesisHash,
        connectionString: self.connectionString(),
        endpoint: self.endpoint(),
        status: self.status(),
        version: self.version,
      }),
      challenge,
    });
    const introduction = readIntroduction(signed);
    const { identity } = introduction;
    const proven = client.identityOf(endpoint);
    if (!challenge.equals(introduction.challenge) || introduction.genesisHash !== genesisHash) {
      throw new Failure("INVALID_SIGNATURE", "The peer's introduction was not made for this node.");
    }
    if (policy.tls && proven !== identity) {
      throw new Failure("INVALID_SIGNATURE", `The peer introduces itself as ${identity}, but its TLS key is another.`);
    }
    if (introduction.status === undefined) {
      throw new Failure("INVALID_REQUEST", "The peer does not say how far it is.");
    }
    const refusal = book.recordProof(endpoint, {
      identity,
      connectionString: parseConnectionString(introduction.connectionString),
      announced: parseEndpoint(introduction.endpoint, policy),
      status: readStatus(introduction.status),
    });
    if (refusal === undefined) {
      hearOf(peers);
      onVerified(endpoint);
    }
  }

  /** False when the peer does not know this node. */
  async function askStatus(endpoint: string, maxPeers: number): Promise<boolean> {
    const { status, peers, knowsCaller } = await client.call(endpoint, PeerService.method.exchangeStatus, {
      status: self.status(),
      maxPeers,
    });
    if (status === undefined) {
      throw new Failure("INVALID_REQUEST", "The peer does not say how far it is.");
    }
    book.recordStatus(endpoint, readStatus(status));
    hearOf(peers);
    return knowsCaller;
  }

  async function askOne(endpoint: string, maxPeers: number): Promise<void> {
    const entry = book.get(endpoint);
    if (entry === undefined || self.genesisHash === undefined) {
      return;
    }
    if (!entry.introduced) {
      client.drop(endpoint);
    }
    const introducedMs = nowMs() - (entry.verifiedMs ?? 0);
    const isFresh = entry.introduced && introducedMs < introducedForMs;
    try {
      const isKnown = isFresh && policy.tls && (await askStatus(endpoint, maxPeers));
      if (!isKnown && (!isFresh || !policy.tls || introducedMs > helloAgainAfterMs)) {
        await meet(endpoint, self.genesisHash);
      }
    } catch (error) {
      if (error instanceof Failure) {
        book.recordRefusal(endpoint, error.message);
      } else if (!(error instanceof CallError)) {
        onError(error);
      } else if (error.isAnswer && !isFresh) {
        book.recordRefusal(endpoint, `The peer refuses this node: ${error.message}`);
      } else {
        book.recordFailure(endpoint);
      }
      client.drop(endpoint);
    }
  }

  function hearOf(peers: readonly KnownPeer[]): void {
    for (const { endpoint, identity } of peers.slice(0, maxHeard)) {
      try {
        const heard = parseEndpoint(endpoint, policy);
        checkHost(heard, policy);
        if (heard !== self.endpoint() && identity !== self.key.publicKey && book.verified(identity) === undefined) {
          book.hear(heard, "gossip");
        }
      } catch (error) {
        // Hearsay of an address that this node would not call is not worth a word.
        if (!(error instanceof Failure)) {
          throw error;
        }
      }
    }
  }

  return {
    ask(endpoint, maxPeers) {
      let asking = underWay.get(endpoint);
      if (asking === undefined) {
        asking = askOne(endpoint, maxPeers).finally(() => underWay.delete(endpoint));
        underWay.set(endpoint, asking);
      }
      return asking;
    },
    underWay: (endpoint) => underWay.get(endpoint),
  };
}
