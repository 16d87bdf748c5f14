/** Scans stored data for corruption, in portions short enough for requests to be served in between. */
import { messageFor } from "./corruption.js";
import { isDatabaseCorruption } from "./database-error-kind.js";

export interface Finding {
  readonly what: string;
  readonly sentence: string;
}

/** Kinds of items, in the order in which they are verified. */
export const verifiedKinds = ["blocks", "roots", "nodes", "nullifiers", "senders", "programs"] as const;

export type VerifiedKind = (typeof verifiedKinds)[number];

/** Progress of a scan after one portion. */
export interface VerifiedPortion {
  readonly kind: VerifiedKind;
  /** Number of items verified so far, and in total. */
  readonly done: number;
  readonly total: number;
  readonly findings: readonly Finding[];
}

export type Verification = AsyncGenerator<VerifiedPortion, void>;

export async function runCheck(what: string, check: () => Promise<unknown>): Promise<Finding[]> {
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

export interface VerifiedRows<Row> {
  readonly kind: VerifiedKind;
  /** Returns the number of rows when the scan starts. */
  readonly count: () => Promise<number>;
  /** Returns the next portion of rows after a key, in key order. The key "" returns the first rows. */
  readonly after: (key: string) => Promise<readonly Row[]>;
  readonly keyOf: (row: Row) => string;
  readonly nameOf: (row: Row) => string;
  /** Throws CorruptionError if the row is corrupt. */
  readonly check: (row: Row) => Promise<void>;
}

/**
 * Verifies the rows of a table in key order. Includes rows that are added during the scan if their key is still ahead.
 */
export async function* verifyRows<Row>({ kind, count, after, keyOf, nameOf, check }: VerifiedRows<Row>): Verification {
  const total = await count();
  let done = 0;
  for (let rows = await after(""); rows.length > 0; rows = await after(keyOf(rows.at(-1)!))) {
    const findings: Finding[] = [];
    for (const row of rows) {
      findings.push(...(await runCheck(nameOf(row), () => check(row))));
    }
    done += rows.length;
    yield { kind, done, total: Math.max(done, total), findings };
  }
}
