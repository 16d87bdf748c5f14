/**
 * Dials peers: one that has not proved who it is since this process began gets a handshake; with the others statuses are
 * exchanged. Either way the peer learns the same of this node.
 */
import { PeerService } from "../../../gen/gatehouse/peer/v1/peer_pb.js";
import { CallError } from "../../rpc/channel.js";
import { RpcError } from "../../rpc/errors.js";
import type { PeerClient } from "./client.js";
import { type DialRateLimit, DialRateLimited } from "./dial-rate-limit.js";
import { createGossipIntake } from "./gossip.js";
import { type HandshakeDeps, shakeHands } from "./handshake.js";
import type { PeerBook } from "../address-book/peer-book.js";

export interface DialerDeps extends HandshakeDeps {
  readonly client: PeerClient;
  readonly book: PeerBook;
  readonly pace: DialRateLimit;
  readonly nowMs: () => number;
  /** Hears when a peer has proved who it is. */
  readonly onVerified: (endpoint: string) => void;
  /** Hears of an error that is this node's own, and none of a peer's. */
  readonly onError: (error: unknown) => void;
}

export interface Dialer {
  /**
   * Dials a peer and records what comes of it. Never rejects, dials nobody twice at a time, and one that is not in touch
   * no more often than its turn comes.
   *
   * @param maxPeers how many others the peer is asked for.
   */
  dial(endpoint: string, maxPeers: number): Promise<void>;
  /** The dialing of a peer that is under way. */
  underWay(endpoint: string): Promise<void> | undefined;
}

/** A handshake is repeated after this. */
const handshakeHoldsForMs = 600_000;
/** And with a peer that does not know this node, after this. */
const handshakeAgainAfterMs = 30_000;

/** Builds a dialer; it knows only who is in the book. */
export function createDialer(deps: DialerDeps): Dialer {
  const { self, book, client, policy, pace, readStatus, nowMs, onVerified, onError } = deps;
  const takeGossip = createGossipIntake(deps);
  const underWay = new Map<string, Promise<void>>();

  async function verify(endpoint: string, genesisHash: string): Promise<void> {
    const { proven, peers } = await shakeHands(deps, endpoint, genesisHash);
    if (book.recordHandshake(endpoint, proven) === undefined) {
      takeGossip(peers);
      onVerified(endpoint);
    }
  }

  /** False when the peer does not know this node. */
  async function exchangeStatus(endpoint: string, maxPeers: number): Promise<boolean> {
    const { status, peers, knowsCaller } = await client.call(endpoint, PeerService.method.exchangeStatus, {
      status: self.status(),
      maxPeers,
    });
    if (status === undefined) {
      throw new RpcError("INVALID_REQUEST", "The peer does not say how far it is.");
    }
    book.recordStatus(endpoint, readStatus(status));
    takeGossip(peers);
    return knowsCaller;
  }

  async function dialOne(endpoint: string, maxPeers: number): Promise<void> {
    const entry = book.get(endpoint);
    if (entry === undefined || self.genesisHash === undefined) {
      return;
    }
    if (!entry.handshaken) {
      if (!pace.takeTurn(endpoint)) {
        return;
      }
      client.drop(endpoint);
    }
    const verifiedForMs = nowMs() - (entry.verifiedMs ?? 0);
    const isFresh = entry.handshaken && verifiedForMs < handshakeHoldsForMs;
    try {
      const isKnown = isFresh && policy.tls && (await exchangeStatus(endpoint, maxPeers));
      if (!isKnown && (!isFresh || !policy.tls || verifiedForMs > handshakeAgainAfterMs)) {
        await verify(endpoint, self.genesisHash);
      }
    } catch (error) {
      record(endpoint, error, isFresh);
      client.drop(endpoint);
    }
  }

  function record(endpoint: string, error: unknown, isFresh: boolean): void {
    if (error instanceof RpcError) {
      book.recordRefusal(endpoint, error.message);
    } else if (error instanceof DialRateLimited) {
      return;
    } else if (!(error instanceof CallError)) {
      onError(error);
    } else if (error.isAnswer && !isFresh) {
      book.recordRefusal(endpoint, `The peer refuses this node: ${error.message}`);
    } else {
      book.recordFailure(endpoint);
    }
  }

  return {
    dial(endpoint, maxPeers) {
      let dialing = underWay.get(endpoint);
      if (dialing === undefined) {
        dialing = dialOne(endpoint, maxPeers).finally(() => underWay.delete(endpoint));
        underWay.set(endpoint, dialing);
      }
      return dialing;
    },
    underWay: (endpoint) => underWay.get(endpoint),
  };
}
