/** Identities that two live processes have: one that is verified, and one that shook hands from elsewhere. */
import { createLruCache } from "../../base/caches/lru-cache.js";
import type { BookEntry } from "../address-book/peer.js";

/** A process with an identity that another one holds. */
interface Double {
  readonly endpoint: string;
  /** It came again and again from then on, */
  readonly firstMs: number;
  /** until then. */
  readonly lastMs: number;
}

export interface DuplicateIdentities {
  /** A process with another instance than the holder's shook hands, and named this endpoint. */
  saw(identity: string, endpoint: string): void;
  /**
   * Where it was seen of late; undefined where the holder has not answered since it first came, and may have moved there,
   * or has done so.
   */
  of(holder: BookEntry | undefined): string | undefined;
}

/** A peer that is refused comes again within a minute; twice that. */
const holdsForMs = 120_000;
const maxRemembered = 64;

export function createDuplicateIdentities(nowMs: () => number): DuplicateIdentities {
  const doubles = createLruCache<Double>(maxRemembered);
  const isOfLate = ({ lastMs }: Double): boolean => Math.abs(nowMs() - lastMs) <= holdsForMs;

  return {
    saw(identity, endpoint) {
      const known = doubles.get(identity);
      const isAgain = known?.endpoint === endpoint && isOfLate(known);
      doubles.set(identity, { endpoint, firstMs: isAgain ? known.firstMs : nowMs(), lastMs: nowMs() });
    },
    of(holder) {
      const double = holder?.identity === undefined ? undefined : doubles.get(holder.identity);
      if (double === undefined || !isOfLate(double)) {
        return undefined;
      }
      const { endpoint, firstMs } = double;
      const hasMoved = holder?.endpoint === endpoint || holder?.announced === endpoint;
      return !hasMoved && (holder?.lastSeenMs ?? 0) > firstMs ? endpoint : undefined;
    },
  };
}
