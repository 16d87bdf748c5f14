/**
 * Signed headers from all sources: applied, produced and rejected blocks, and the heads that peers report. Two
 * different headers with the same number and key prove a fork (equivocation). This evidence is reported until the
 * operator resolves it, whatever the cause and whichever block the chain contains.
 */
import { createLruCache } from "../../base/caches/lru-cache.js";
import { createMissingBlocks } from "./missing-blocks.js";

/** Header with a verified signature. */
export interface SignedHeader {
  readonly number: bigint;
  /** Public key of the signer. */
  readonly proposer: string;
  /** Hash of the block: 0x and 64 lower-case hex digits. */
  readonly hash: string;
  /** Encoded header, as signed. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
}

/**
 * Copies a header for storage in memory. Its bytes are often a view of a complete block, which would stay in memory
 * too.
 */
export function copyHeader(signed: SignedHeader): SignedHeader {
  return { ...signed, header: new Uint8Array(signed.header), signature: new Uint8Array(signed.signature) };
}

export interface SignedHeadersDeps {
  readonly authorities: readonly string[];
  /** Returns the header of a stored block; undefined if there is none. */
  readonly storedHeader: (number: bigint) => Promise<SignedHeader | undefined>;
  /** Called for two different headers with the same number, signed by one key. */
  readonly onFork: (one: SignedHeader, other: SignedHeader) => void;
  /** Called when the database cannot be read. */
  readonly onError: (error: unknown) => void;
}

/** Limit on headers cached in memory. */
const maxCached = 1_024;

export type SignedHeaders = ReturnType<typeof createSignedHeaders>;

/** Creates the record of the headers that were signed since the process started. */
export function createSignedHeaders({ authorities, storedHeader, onFork, onError }: SignedHeadersDeps) {
  const cache = createLruCache<SignedHeader>(maxCached);
  const missing = createMissingBlocks(() => performance.now());

  /**
   * Caches a header of an authority, and reports a fork if a different one with its number and signer is cached.
   * Returns true if none was cached.
   */
  function add(signed: SignedHeader): boolean {
    if (!authorities.includes(signed.proposer)) {
      return false;
    }
    missing.announce(signed.number);
    const key = `${signed.number}:${signed.proposer}`;
    const known = cache.get(key);
    if (known === undefined) {
      cache.set(key, copyHeader(signed));
      return true;
    }
    if (known.hash !== signed.hash) {
      onFork(known, copyHeader(signed));
    }
    return false;
  }

  async function compareWithStored(signed: SignedHeader): Promise<void> {
    const stored = await storedHeader(signed.number);
    if (stored !== undefined && stored.proposer === signed.proposer && stored.hash !== signed.hash) {
      onFork(stored, signed);
    }
  }

  return {
    /** Adds a header from another node, and compares it with the stored chain. Ignores signers that are no authorities. */
    addReceived(signed: SignedHeader): void {
      if (add(signed)) {
        compareWithStored(signed).catch(onError);
      }
    },
    /** Adds the header of a block that was stored. */
    addApplied(signed: SignedHeader): void {
      add(signed);
      missing.removeStored(signed.number);
    },
    /**
     * Returns the highest number of any signed header, 0 if there is none. Its source need not be trusted: an authority
     * signed it.
     */
    latestNumber: missing.latestNumber,
    /** Returns for how long, in milliseconds, a header after this number is known without its block; 0 if none is. */
    missingForMs: (number: bigint) => missing.missingForMs(number),
  };
}

/** Encoded header and its signature. */
export type SignedBytes = Pick<SignedHeader, "header" | "signature">;

/** Two different headers with the same block number, signed by one key. */
export interface Evidence {
  /** Public key that signed both headers: 0x and 64 lower-case hex digits. */
  readonly identity: string;
  readonly number: bigint;
  readonly headers: readonly [SignedBytes, SignedBytes];
  /** Time when this node first had both headers, in milliseconds since the epoch. */
  readonly seenMs: number;
  /** True once the operator resolved the evidence. */
  readonly isResolved: boolean;
}

export interface EvidenceTrackerDeps {
  readonly stored: readonly Evidence[];
  readonly nowMs: () => number;
  /** Called for new evidence that is unresolved. */
  readonly onFound: (evidence: Evidence) => void;
}

/**
 * Limit on unresolved evidence for each key. A fork shows in every later block, so more evidence adds no information.
 */
const maxPerKey = 10;

/** Creates the tracker of fork evidence on this node, resolved or not. */
export function createEvidenceTracker({ stored, nowMs, onFound }: EvidenceTrackerDeps) {
  const all = new Map(stored.map((evidence) => [keyOf(evidence), evidence]));
  const unsaved = new Set<string>();
  let unresolved = listUnresolved();

  function listUnresolved(): readonly Evidence[] {
    return [...all.values()].filter(({ isResolved }) => !isResolved).sort(bySignerAndNumber);
  }

  function put(evidence: Evidence): void {
    all.set(keyOf(evidence), evidence);
    unsaved.add(keyOf(evidence));
    unresolved = listUnresolved();
  }

  return {
    /** Adds two different headers with the same number and signer. */
    add(one: SignedHeader, other: SignedHeader): void {
      const { proposer: identity, number } = one;
      const known = [...all.values()].filter((evidence) => evidence.identity === identity);
      const unresolvedCount = known.filter((evidence) => !evidence.isResolved).length;
      if (unresolvedCount >= maxPerKey || known.some((evidence) => evidence.number === number)) {
        return;
      }
      // Peers report different block numbers of a fork. Up to a resolved number, they belong to the resolved fork.
      const isResolved = known.some((evidence) => evidence.isResolved && evidence.number >= number);
      const headers = [bytesOf(one), bytesOf(other)] as const;
      const evidence: Evidence = { identity, number, headers, seenMs: nowMs(), isResolved };
      put(evidence);
      if (!isResolved) {
        onFound(evidence);
      }
    },
    /** Returns unresolved evidence, sorted by signer and number. Returns the same array until the evidence changes. */
    unresolved: () => unresolved,
    /** Marks all evidence as resolved. */
    resolve(): void {
      unresolved.forEach((evidence) => put({ ...evidence, isResolved: true }));
    },
    /** Saves unsaved evidence. On failure, the evidence stays unsaved and the next call saves it again. */
    async store(save: (evidence: readonly Evidence[]) => Promise<void>): Promise<void> {
      const keys = [...unsaved];
      if (keys.length === 0) {
        return;
      }
      unsaved.clear();
      try {
        await save(keys.map((key) => all.get(key)!));
      } catch (error) {
        keys.forEach((key) => unsaved.add(key));
        throw error;
      }
    },
  };
}

const keyOf = ({ identity, number }: Evidence): string => `${identity}:${number}`;
const bytesOf = ({ header, signature }: SignedBytes): SignedBytes => ({ header, signature });
const bySignerAndNumber = (a: Evidence, b: Evidence): number =>
  a.identity === b.identity ? Number(a.number - b.number) : a.identity < b.identity ? -1 : 1;
