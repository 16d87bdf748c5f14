/** A walk over everything that is stored, in portions that are small enough for others to have their turn in between. */
import { messageFor } from "./corruption.js";
import { isDatabaseCorruption } from "./database-error-kind.js";

/** Something that is not what was stored. */
export interface Finding {
  readonly what: string;
  /** For the operator. */
  readonly sentence: string;
}

/** What is counted, in the order in which it is looked at. */
export const verifiedKinds = ["blocks", "roots", "nodes", "nullifiers", "senders", "programs"] as const;

export type VerifiedKind = (typeof verifiedKinds)[number];

/** A piece of a walk. */
export interface VerifiedPortion {
  readonly kind: VerifiedKind;
  /** How many of them were looked at so far, and how many there are. */
  readonly done: number;
  readonly total: number;
  readonly findings: readonly Finding[];
}

export type Verification = AsyncGenerator<VerifiedPortion, void>;

/** Looks at something; gives what does not fit. Throws what tells of no damage. */
export async function look(what: string, check: () => Promise<unknown>): Promise<Finding[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (isDatabaseCorruption(error)) {
      return [{ what, sentence: messageFor(error, what) }];
    }
    throw error;
  }
}

/** Rows of a table that are looked at one by one. */
export interface VerifiedRows<Row> {
  readonly kind: VerifiedKind;
  /** How many there are, as the walk begins. */
  readonly count: () => Promise<number>;
  /** The next ones after a key, in its order, a portion of them; after "" the first. */
  readonly after: (key: string) => Promise<readonly Row[]>;
  readonly keyOf: (row: Row) => string;
  /** What a row is called that does not fit. */
  readonly nameOf: (row: Row) => string;
  /** Throws DamageError. */
  readonly check: (row: Row) => Promise<void>;
}

/** Walks over rows; those that come meanwhile are looked at, too, where their key is still ahead. */
export async function* verifyRows<Row>({ kind, count, after, keyOf, nameOf, check }: VerifiedRows<Row>): Verification {
  const total = await count();
  let done = 0;
  for (let rows = await after(""); rows.length > 0; rows = await after(keyOf(rows.at(-1)!))) {
    const findings: Finding[] = [];
    for (const row of rows) {
      findings.push(...(await look(nameOf(row), () => check(row))));
    }
    done += rows.length;
    yield { kind, done, total: Math.max(done, total), findings };
  }
}

/** A walk over things of one kind. Where what leads from one portion to the next is damaged, that is a finding, and the end. */
export async function* toItsEnd(kind: VerifiedKind, verification: Verification): Verification {
  let reached: Pick<VerifiedPortion, "done" | "total"> = { done: 0, total: 0 };
  try {
    for await (const portion of verification) {
      reached = portion.kind === kind ? portion : reached;
      yield portion;
    }
  } catch (error) {
    if (!isDatabaseCorruption(error)) {
      throw error;
    }
    const what = `the way over the ${kind}`;
    const { done, total } = reached;
    yield { kind, done, total, findings: [{ what, sentence: messageFor(error, what) }] };
  }
}
