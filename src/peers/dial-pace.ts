/**
 * How often others are dialed, whoever names them and however: a stranger's word is free, and what it makes this node do
 * falls on somebody else. The address book forgets, and is told again; what is counted here is not in it.
 */
import { LRUCache } from "lru-cache";
import { CallError } from "../rpc/channel.js";
import { networkOf } from "./ip-address.js";

/** Paces dials. */
export interface DialPace {
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
export class NotNow extends CallError {
  constructor() {
    super("Its address was called too often of late.", false);
  }
}

interface Rate {
  /** How many at once. */
  readonly burst: number;
  /** One more after each of these. */
  readonly everyMs: number;
}

/** Connections to one address, or /64 of IPv6, to endpoints at which nobody was verified. */
const toStrangers: Rate = { burst: 8, everyMs: 10_000 };
/** And to verified ones, of which a site may have many: their names may lead elsewhere today. */
const toVerified: Rate = { burst: 64, everyMs: 1_000 };
/** Dials at once, all together; further ones wait for a tick of the main loop, which dials few. */
const dialBacks: Rate = { burst: 32, everyMs: 250 };
/** Most endpoints and most addresses that are remembered: more than these rates can bring in the time that they count. */
const maxRemembered = 4_096;

/** @param intervalMs time between two looks at a peer. */
export function createDialPace(intervalMs: number, nowMs: () => number): DialPace {
  // A tick may come early, as in dial-schedule.ts.
  const turns = createBuckets({ burst: 1, everyMs: intervalMs / 2 }, nowMs);
  const atOnce = createBuckets(dialBacks, nowMs);
  const strangers = createBuckets(toStrangers, nowMs);
  const verified = createBuckets(toVerified, nowMs);
  return {
    takeTurn: (endpoint) => turns.take(endpoint),
    takeDialBack: (endpoint) => turns.has(endpoint) && atOnce.take("all"),
    countConnection(ip, isVerified) {
      if (!(isVerified ? verified : strangers).take(networkOf(ip))) {
        throw new NotNow();
      }
    },
  };
}

/** Token buckets by key. */
function createBuckets({ burst, everyMs }: Rate, nowMs: () => number) {
  const buckets = new LRUCache<string, { readonly tokens: number; readonly atMs: number }>({ max: maxRemembered });

  function tokensOf(key: string): number {
    const bucket = buckets.get(key);
    // A clock that was set back counts as one that stands still.
    return bucket === undefined ? burst : Math.min(burst, bucket.tokens + Math.max(0, nowMs() - bucket.atMs) / everyMs);
  }

  return {
    has: (key: string): boolean => tokensOf(key) >= 1,
    /** False when none is left. */
    take(key: string): boolean {
      const tokens = tokensOf(key);
      if (tokens >= 1) {
        buckets.set(key, { tokens: tokens - 1, atMs: nowMs() });
      }
      return tokens >= 1;
    },
  };
}
