/**
 * Evidence of forks (equivocation): two headers with the same block number, signed by one authority. Evidence is
 * reported until the operator resolves it, whatever the cause and whichever block the chain contains.
 */
import type { SignedHeader } from "./signed-headers.js";

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

/** Persistent store of fork evidence. */
export interface EvidenceStore {
  load(): Promise<Evidence[]>;
  /** Inserts evidence, or updates whether it is resolved. */
  save(evidence: readonly Evidence[]): Promise<void>;
}

export interface EvidenceTrackerDeps {
  readonly stored: readonly Evidence[];
  readonly nowMs: () => number;
  /** Called for new evidence that is unresolved. */
  readonly onFound: (evidence: Evidence) => void;
}

/** Tracker of fork evidence on this node, resolved or not. */
export interface EvidenceTracker {
  /** Adds two different headers with the same number and signer. */
  add(one: SignedHeader, other: SignedHeader): void;
  /** Returns unresolved evidence, sorted by signer and number. Returns the same array until the evidence changes. */
  unresolved(): readonly Evidence[];
  /** Marks all evidence as resolved. */
  resolve(): void;
  /** Saves unsaved evidence. On failure, the evidence stays unsaved and the next call saves it again. */
  store(save: (evidence: readonly Evidence[]) => Promise<void>): Promise<void>;
}

/**
 * Limit on unresolved evidence for each key. A fork shows in every later block, so more evidence adds no information.
 */
const maxPerKey = 10;

export function createEvidenceTracker({ stored, nowMs, onFound }: EvidenceTrackerDeps): EvidenceTracker {
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
    add(one, other) {
      const { proposer: identity, number } = one;
      const known = [...all.values()].filter((evidence) => evidence.identity === identity);
      const unresolvedCount = known.filter((evidence) => !evidence.isResolved).length;
      if (unresolvedCount >= maxPerKey || known.some((evidence) => evidence.number === number)) {
        return;
      }
      // Peers report different block numbers of a fork. Up to a resolved number, they belong to the resolved fork.
      const isResolved = known.some((evidence) => evidence.isResolved && evidence.number >= number);
      const evidence: Evidence = {
        identity,
        number,
        headers: [bytesOf(one), bytesOf(other)],
        seenMs: nowMs(),
        isResolved,
      };
      put(evidence);
      if (!isResolved) {
        onFound(evidence);
      }
    },
    unresolved: () => unresolved,
    resolve() {
      unresolved.forEach((evidence) => put({ ...evidence, isResolved: true }));
    },
    async store(save) {
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
