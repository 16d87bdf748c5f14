/**
 * Evidence of forks (equivocation): two headers with the same block number, signed by one authority. Evidence is
 * retained until the operator resolves it, whatever the cause and whichever block the chain contains.
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

export interface EvidenceBookDeps {
  readonly stored: readonly Evidence[];
  readonly nowMs: () => number;
  /** Called for new evidence that is unresolved. */
  readonly onFound: (evidence: Evidence) => void;
}

/** Evidence of forks on this node, resolved or not. */
export interface EvidenceBook {
  /** Adds two different headers with the same number and key. */
  add(one: SignedHeader, other: SignedHeader): void;
  /** Returns unresolved evidence, sorted by key and number. Returns the same array until the evidence changes. */
  open(): readonly Evidence[];
  /** Marks all evidence as resolved. */
  resolve(): void;
  /** Saves unsaved evidence. On failure, the evidence stays unsaved and the next call saves it again. */
  store(save: (evidence: readonly Evidence[]) => Promise<void>): Promise<void>;
}

/**
 * Limit on unresolved evidence for each key. A fork shows in every later block, so more evidence adds no information.
 */
const maxPerKey = 10;

export function createEvidenceBook({ stored, nowMs, onFound }: EvidenceBookDeps): EvidenceBook {
  const all = new Map(stored.map((evidence) => [nameOf(evidence), evidence]));
  const unsaved = new Set<string>();
  let open = listOpen();

  function listOpen(): readonly Evidence[] {
    return [...all.values()].filter(({ isResolved }) => !isResolved).sort(byKeyAndNumber);
  }

  function put(evidence: Evidence): void {
    all.set(nameOf(evidence), evidence);
    unsaved.add(nameOf(evidence));
    open = listOpen();
  }

  const ofKey = (identity: string): Evidence[] => [...all.values()].filter((one) => one.identity === identity);

  return {
    add(one, other) {
      const { proposer: identity, number } = one;
      const known = ofKey(identity);
      const openCount = known.filter((evidence) => !evidence.isResolved).length;
      if (openCount >= maxPerKey || known.some((evidence) => evidence.number === number)) {
        return;
      }
      // A number up to one that was resolved belongs to the same fork: peers report different numbers of a fork.
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
    open: () => open,
    resolve() {
      open.forEach((evidence) => put({ ...evidence, isResolved: true }));
    },
    async store(save) {
      const names = [...unsaved];
      if (names.length === 0) {
        return;
      }
      unsaved.clear();
      try {
        await save(names.map((name) => all.get(name)!));
      } catch (error) {
        names.forEach((name) => unsaved.add(name));
        throw error;
      }
    },
  };
}

const nameOf = ({ identity, number }: Evidence): string => `${identity}:${number}`;
const bytesOf = ({ header, signature }: SignedBytes): SignedBytes => ({ header, signature });
const byKeyAndNumber = (a: Evidence, b: Evidence): number =>
  a.identity === b.identity ? Number(a.number - b.number) : a.identity < b.identity ? -1 : 1;
