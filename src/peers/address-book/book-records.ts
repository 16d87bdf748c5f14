/** What comes of dialing peers, as the address book records it. */
import type { BookEntries } from "./book-entries.js";
import type { BookIdentities } from "./book-identities.js";
import { nextTryAfter } from "./dial-schedule.js";
import { type BookEntry, seen } from "./peer.js";
import type { ProvenPeer, ReadStatus } from "./status.js";

/** Records what peers say and do; of one that is not in the book, nothing. */
export interface BookRecords {
  /** The peer proved who it is. Gives why it is refused all the same. */
  recordHandshake(endpoint: string, proven: ProvenPeer): string | undefined;
  /** The peer said how far it is. */
  recordStatus(endpoint: string, status: ReadStatus): void;
  recordFailure(endpoint: string): void;
  /** The peer answered, and is not to be believed. */
  recordRefusal(endpoint: string, reason: string): void;
  /** The peer sent what it should not have. */
  distrust(endpoint: string, reason: string): void;
  /** The peer sent nothing, which may be the wire's fault: others have a chance before it is asked again. */
  pause(endpoint: string, reason: string): void;
}

export interface BookRecordsDeps {
  readonly entries: BookEntries;
  readonly identities: BookIdentities;
  /** Time between two looks at a peer that answers. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

const firstDistrustMs = 60_000;
export const longestDistrustMs = 3_600_000;
const pausedMs = 10_000;

export function createBookRecords({ entries, identities, intervalMs, nowMs }: BookRecordsDeps): BookRecords {
  function change(endpoint: string, how: (entry: BookEntry, now: number) => Partial<BookEntry>): void {
    const entry = entries.get(endpoint);
    if (entry !== undefined) {
      entries.put({ ...entry, ...how(entry, nowMs()) });
    }
  }

  const failed = ({ failures }: BookEntry, now: number): Partial<BookEntry> => ({
    failures: failures + 1,
    nextTryMs: nextTryAfter(failures + 1, intervalMs, now),
    online: false,
    accepting: false,
    handshaken: false,
  });

  const answered = (status: ReadStatus, entry: BookEntry, now: number): Partial<BookEntry> => ({
    ...seen(status, now),
    message: entry.distrustedUntilMs > now ? entry.message : undefined,
  });

  const recordRefusal = (endpoint: string, message: string): void =>
    change(endpoint, (entry, now) => ({ ...failed(entry, now), verifiedMs: undefined, message, lastDialedMs: now }));

  return {
    recordRefusal,
    recordFailure: (endpoint) => change(endpoint, failed),
    recordStatus: (endpoint, status) => change(endpoint, (entry, now) => answered(status, entry, now)),

    recordHandshake(endpoint, proven) {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return undefined;
      }
      const refusal = identities.whyRefused(entry, proven);
      if (refusal !== undefined) {
        recordRefusal(endpoint, refusal);
        return refusal;
      }
      const { identity, connectionString, announced, instanceId, status } = proven;
      identities.moveTo(endpoint, identity);
      change(endpoint, (_, now) => ({
        identity,
        connectionString,
        announced,
        instanceId,
        ...answered(status, entry, now),
        verifiedMs: now,
        handshaken: true,
      }));
      return undefined;
    },

    distrust: (endpoint, message) =>
      change(endpoint, ({ offences }, now) => ({
        offences: offences + 1,
        distrustedUntilMs: now + Math.min(longestDistrustMs, firstDistrustMs * 2 ** Math.min(offences, 10)),
        message,
      })),

    pause: (endpoint, message) =>
      change(endpoint, ({ distrustedUntilMs }, now) => ({
        distrustedUntilMs: Math.max(distrustedUntilMs, now + pausedMs),
        message,
      })),
  };
}
