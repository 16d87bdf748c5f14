/**
 * Evidence of forks: two headers of one number that one authority has signed. It is kept, whoever is at fault and whatever
 * became of both blocks, until the operator says that he has dealt with it.
 */
import type { SignedHeader } from "./signed-headers.js";

/** A header and its signature. */
export type SignedBytes = Pick<SignedHeader, "header" | "signature">;

/** Two headers of one number, signed by one key. */
export interface Evidence {
  /** Who signed them: 0x and 64 lower-case hex digits. */
  readonly identity: string;
  readonly number: bigint;
  readonly headers: readonly [SignedBytes, SignedBytes];
  /** When this node first had both. */
  readonly seenMs: number;
  /** The operator has dealt with it. */
  readonly isSettled: boolean;
}

/** What is stored of it. */
export interface EvidenceStore {
  load(): Promise<Evidence[]>;
  /** Adds evidence, or what has become of it. */
  save(evidence: readonly Evidence[]): Promise<void>;
}

export interface EvidenceBookDeps {
  readonly stored: readonly Evidence[];
  readonly nowMs: () => number;
  /** Hears of evidence that nobody has dealt with. */
  readonly onFound: (evidence: Evidence) => void;
}

/** All evidence that this node has. */
export interface EvidenceBook {
  /** Takes two different headers of one number and key. */
  add(one: SignedHeader, other: SignedHeader): void;
  /** What nobody has dealt with, by key and number. The same list until it changes. */
  open(): readonly Evidence[];
  /** The operator has dealt with all that there is. */
  settle(): void;
  /** Gives what is to be stored, and takes it back where that fails. */
  store(save: (evidence: readonly Evidence[]) => Promise<void>): Promise<void>;
}

/** One fork shows in every number after it: more of one key, before somebody has dealt with that, says nothing new. */
const mostOfOneKey = 10;

export function createEvidenceBook({ stored, nowMs, onFound }: EvidenceBookDeps): EvidenceBook {
  const all = new Map(stored.map((evidence) => [nameOf(evidence), evidence]));
  const unsaved = new Set<string>();
  let open = listOpen();

  function listOpen(): readonly Evidence[] {
    return [...all.values()].filter(({ isSettled }) => !isSettled).sort(byKeyAndNumber);
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
      const openCount = known.filter((evidence) => !evidence.isSettled).length;
      if (openCount >= mostOfOneKey || known.some((evidence) => evidence.number === number)) {
        return;
      }
      // Another number of a fork that was dealt with: others show whichever they have.
      const isSettled = known.some((evidence) => evidence.isSettled && evidence.number >= number);
      const evidence: Evidence = {
        identity,
        number,
        headers: [bytesOf(one), bytesOf(other)],
        seenMs: nowMs(),
        isSettled,
      };
      put(evidence);
      if (!isSettled) {
        onFound(evidence);
      }
    },
    open: () => open,
    settle() {
      open.forEach((evidence) => put({ ...evidence, isSettled: true }));
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
