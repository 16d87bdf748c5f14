/**
 * How often others are dialed, whoever names them and however: a stranger's word is free, and what it makes this node do
 * falls on somebody else. The address book forgets, and is told again; what is counted here is not in it.
 */
import { type BucketRate, createTokenBuckets } from "../../base/limits/token-buckets.js";
import { CallError } from "../../rpc/channel.js";
import { dialPrefixOf } from "../address-book/ip-address.js";

/** Paces dials. */
export interface DialRateLimit {
  /** Whether an endpoint that is not in touch may be dialed again; if so, that is its turn. */
  takeTurn(endpoint: string): boolean;
  /** Whether an endpoint may be dialed at once, because somebody who shook hands named it. */
  takeDialBack(endpoint: string): boolean;
  /**
   * Lets a connection to an address be opened.
   *
   * @param isVerified a peer was verified at this endpoint, so that it is there by its own will.
   * @throws NotNow when there were too many of late.
   */
  countConnection(ip: string, isVerified: boolean): void;
}

/** Nobody was called: others of the same address were, too often. It says nothing of the peer. */
export class DialRateLimited extends CallError {
  constructor() {
    super("Its address was called too often of late.", false);
  }
}

/** Connections to one address, or /64 of IPv6, to endpoints at which nobody was verified. */
const toStrangers: BucketRate = { burst: 8, tokens: 1, everyMs: 10_000 };
/** And to verified ones, of which a site may have many: their names may lead elsewhere today. */
const toVerified: BucketRate = { burst: 64, tokens: 1, everyMs: 1_000 };
/** Dials at once, all together; further ones wait for a tick of the main loop, which dials few. */
const dialBacks: BucketRate = { burst: 32, tokens: 1, everyMs: 250 };
/** Most endpoints and most addresses that are remembered: more than these rates can bring in the time that they count. */
const maxRemembered = 4_096;

/** @param intervalMs time between two looks at a peer. */
export function createDialRateLimit(intervalMs: number): DialRateLimit {
  // A tick may come early, as in dial-schedule.ts.
  const turns = createPace({ burst: 1, tokens: 1, everyMs: intervalMs / 2 });
  const atOnce = createPace(dialBacks);
  const strangers = createPace(toStrangers);
  const verified = createPace(toVerified);
  return {
    takeTurn: (endpoint) => turns.take(endpoint),
    takeDialBack: (endpoint) => turns.has(endpoint) && atOnce.take("all"),
    countConnection(ip, isVerified) {
      if (!(isVerified ? verified : strangers).take(dialPrefixOf(ip))) {
        throw new DialRateLimited();
      }
    },
  };
}

/** One rate for every key. */
function createPace(rate: BucketRate) {
  const buckets = createTokenBuckets(maxRemembered);
  return {
    /** Whether one is left. To ask is not remembered. */
    has: (key: string): boolean => (buckets.known(key)?.getWaitTime(1) ?? 0) === 0,
    /** False when none is left. */
    take: (key: string): boolean => buckets.of(key, rate).tryRemoveTokens(1),
  };
}
