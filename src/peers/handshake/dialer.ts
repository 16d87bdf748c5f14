/**
 * Dials peers. A peer without a proved identity since this process started gets a handshake. Other peers exchange
 * statuses. In both cases the peer learns the status of this node.
 */
import { type KnownPeer, PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import type { PeerClient } from "./client.js";
import { type DialRateLimit, DialRateLimited } from "./dial-rate-limit.js";
import { type HandshakeDeps, performHandshake } from "./handshake.js";
import { callableEndpoint } from "../address-book/endpoint.js";
import type { PeerBook } from "../address-book/peer-book.js";
import { peerReasons } from "../address-book/peer-reasons.js";

export interface DialerDeps extends HandshakeDeps {
  readonly client: Pick<PeerClient, "call" | "drop" | "identityOf">;
  readonly book: PeerBook;
  readonly dialRateLimit: DialRateLimit;
  readonly nowMs: () => number;
  /** Called when a peer has proved its identity. */
  readonly onVerified: (endpoint: string) => void;
  /** Called for an internal error of this node that no peer caused. */
  readonly onError: (error: unknown) => void;
}

/** Time in milliseconds after which a handshake is repeated. */
const handshakeValidForMs = 600_000;
/** Time in milliseconds after which a handshake is repeated with a peer that does not know this node. */
const unknownCallerRetryMs = 30_000;
/** Limit on the peers in one response, sent or received. */
export const maxGossipedPeers = 50;
/** Limit on the peers that receive an announcement. Other peers learn of the block from these, or when they poll. */
const maxAnnouncedTo = 50;

export type Dialer = ReturnType<typeof createDialer>;

/** Creates a dialer. The dialer calls only peers in the address book. */
export function createDialer(deps: DialerDeps) {
  const { self, book, client, policy, dialRateLimit, readStatus, nowMs, onVerified, onError } = deps;
  const dials = new Map<string, Promise<void>>();

  /** Adds the peers of a response to the address book. Endpoints that this node would not call are ignored. */
  function acceptGossip(peers: readonly KnownPeer[]): void {
    for (const { endpoint: text, identity } of peers.slice(0, maxGossipedPeers)) {
      const endpoint = callableEndpoint(text, policy);
      // Verified peers need no gossip. This node's own identity is never among them, so a duplicate of it gets dialed
      // and detected.
      if (endpoint !== undefined && endpoint !== self.endpoint() && book.verified(identity) === undefined) {
        book.add(endpoint, "gossip");
      }
    }
  }

  async function verify(endpoint: string, genesisHash: string): Promise<void> {
    const { proven, peers } = await performHandshake(deps, endpoint, genesisHash);
    if (book.recordHandshake(endpoint, proven) === undefined) {
      acceptGossip(peers);
      onVerified(endpoint);
    }
  }

  /** Exchanges statuses with a peer. Returns false if the peer does not know this node. */
  async function exchangeStatus(endpoint: string, maxPeers: number): Promise<boolean> {
    const { status, peers, knowsCaller } = await client.call(endpoint, PeerService.method.exchangeStatus, {
      status: self.status(),
      maxPeers,
    });
    if (status === undefined) {
      throw new RpcError("INVALID_REQUEST", "The peer does not report its latest block.");
    }
    book.recordStatus(endpoint, readStatus(status));
    acceptGossip(peers);
    return knowsCaller;
  }

  async function dialOne(endpoint: string, maxPeers: number): Promise<void> {
    const entry = book.get(endpoint);
    if (entry === undefined || self.genesisHash === undefined) {
      return;
    }
    if (!entry.handshaken) {
      if (!dialRateLimit.tryDial(endpoint)) {
        return;
      }
      client.drop(endpoint);
    }
    const verifiedForMs = nowMs() - (entry.verifiedMs ?? 0);
    const hasFreshHandshake = entry.handshaken && verifiedForMs < handshakeValidForMs;
    try {
      const knowsThisNode = hasFreshHandshake && policy.tls && (await exchangeStatus(endpoint, maxPeers));
      if (!knowsThisNode && (!hasFreshHandshake || !policy.tls || verifiedForMs > unknownCallerRetryMs)) {
        await verify(endpoint, self.genesisHash);
      }
    } catch (error) {
      record(endpoint, error, hasFreshHandshake);
      client.drop(endpoint);
    }
  }

  function record(endpoint: string, error: unknown, hasFreshHandshake: boolean): void {
    if (error instanceof RpcError) {
      book.recordRejection(endpoint, peerReasons.invalidStatement(error.message));
    } else if (error instanceof DialRateLimited) {
      return;
    } else if (!(error instanceof CallError)) {
      onError(error);
    } else if (error.isResponse && !hasFreshHandshake) {
      book.recordRejection(endpoint, peerReasons.rejectedThisNode(error.message));
    } else {
      book.recordFailure(endpoint, peerReasons.unreachable(error.message));
    }
  }

  return {
    /**
     * Dials a peer and records the result. Never rejects. Joins a dial of the same peer that is in progress. The rate
     * limit applies to peers without a current handshake.
     *
     * @param maxPeers number of other peers to request.
     */
    dial(endpoint: string, maxPeers: number): Promise<void> {
      let dial = dials.get(endpoint);
      if (dial === undefined) {
        dial = dialOne(endpoint, maxPeers).finally(() => dials.delete(endpoint));
        dials.set(endpoint, dial);
      }
      return dial;
    },
    /** Returns the dial of a peer that is in progress; undefined if there is none. */
    dialInProgress: (endpoint: string) => dials.get(endpoint),
  };
}

/** Position of a node: its latest block, and the time of the latest signed head for that block. */
interface Position {
  readonly number: bigint;
  /** Time of the signed head; 0 if there is none. */
  readonly statedMs: number;
}

/**
 * Creates the function that announces the current position to peers at once, so that they need not wait for their next
 * poll. A peer with an announcement in progress gets newer positions after that.
 */
export function createAnnounce(book: Pick<PeerBook, "healthy">, dialer: Dialer, position: () => Position): () => void {
  const announcing = new Set<string>();

  async function announceTo(endpoint: string): Promise<void> {
    announcing.add(endpoint);
    let announced: Position = { number: -1n, statedMs: 0 };
    while (isBehind(announced, position())) {
      // A dial in progress may have sent an older position.
      await dialer.dialInProgress(endpoint);
      announced = position();
      await dialer.dial(endpoint, 0);
    }
    announcing.delete(endpoint);
  }

  return () => {
    const current = position();
    book
      .healthy()
      .filter(({ head, statedMs }) => isBehind({ number: head?.number ?? 0n, statedMs }, current))
      .filter(({ endpoint }) => !announcing.has(endpoint))
      .slice(0, maxAnnouncedTo)
      .forEach(({ endpoint }) => void announceTo(endpoint));
  };
}

function isBehind(peer: Position, target: Position): boolean {
  return peer.number < target.number || (peer.number === target.number && peer.statedMs < target.statedMs);
}
