/** Records the results of dialing peers in the address book. */
import type { BookEntries } from "./book-entries.js";
import type { BookIdentities } from "./book-identities.js";
import { nextTryAfter } from "./dial-schedule.js";
import { type BookEntry, responseFields } from "./peer.js";
import type { ProvenPeer, VerifiedStatus } from "./status.js";

/** Methods that record results. Unknown endpoints are ignored. */
export interface BookRecords {
  /** Records a successful handshake. Returns an error message if the peer is rejected all the same. */
  recordHandshake(endpoint: string, proven: ProvenPeer): string | undefined;
  /** Records a status that the peer reported. */
  recordStatus(endpoint: string, status: VerifiedStatus): void;
  recordFailure(endpoint: string): void;
  /** Records a response that must not be trusted. The peer is no longer verified. */
  recordRejection(endpoint: string, reason: string): void;
  /** Penalizes a peer that sent invalid data: 1 min at first, twice as long each time, up to 1 h. */
  penalize(endpoint: string, reason: string): void;
  /**
   * Pauses a peer for 10 s after it sent nothing, so that other peers are tried first. The network may be the cause, so
   * this is not a penalty.
   */
  pause(endpoint: string, reason: string): void;
}

export interface BookRecordsDeps {
  readonly entries: BookEntries;
  readonly identities: BookIdentities;
  /** Time between two polls of a peer that responds, in milliseconds. */
  readonly intervalMs: number;
  readonly nowMs: () => number;
}

const firstPenaltyMs = 60_000;
export const maxPenaltyMs = 3_600_000;
const pausedMs = 10_000;

export function createBookRecords({ entries, identities, intervalMs, nowMs }: BookRecordsDeps): BookRecords {
  function change(endpoint: string, getChanges: (entry: BookEntry, now: number) => Partial<BookEntry>): void {
    const entry = entries.get(endpoint);
    if (entry !== undefined) {
      entries.put({ ...entry, ...getChanges(entry, nowMs()) });
    }
  }

  const failedFields = ({ failures }: BookEntry, now: number): Partial<BookEntry> => ({
    failures: failures + 1,
    nextTryMs: nextTryAfter(failures + 1, intervalMs, now),
    online: false,
    accepting: false,
    handshaken: false,
  });

  const respondedFields = (status: VerifiedStatus, entry: BookEntry, now: number): Partial<BookEntry> => ({
    ...responseFields(status, now),
    message: entry.penalizedUntilMs > now ? entry.message : undefined,
  });

  const recordRejection = (endpoint: string, message: string): void =>
    change(endpoint, (entry, now) => ({
      ...failedFields(entry, now),
      verifiedMs: undefined,
      message,
      lastDialedMs: now,
    }));

  return {
    recordRejection,
    recordFailure: (endpoint) => change(endpoint, failedFields),
    recordStatus: (endpoint, status) => change(endpoint, (entry, now) => respondedFields(status, entry, now)),

    recordHandshake(endpoint, proven) {
      const entry = entries.get(endpoint);
      if (entry === undefined) {
        return undefined;
      }
      const rejection = identities.findRejectionReason(entry, proven);
      if (rejection !== undefined) {
        recordRejection(endpoint, rejection);
        return rejection;
      }
      const { identity, connectionString, announced, instanceId, status } = proven;
      identities.moveTo(endpoint, identity);
      change(endpoint, (_, now) => ({
        identity,
        connectionString,
        announced,
        instanceId,
        ...respondedFields(status, entry, now),
        verifiedMs: now,
        handshaken: true,
      }));
      return undefined;
    },

    penalize: (endpoint, message) =>
      change(endpoint, ({ penalties }, now) => ({
        penalties: penalties + 1,
        penalizedUntilMs: now + Math.min(maxPenaltyMs, firstPenaltyMs * 2 ** Math.min(penalties, 10)),
        message,
      })),

    pause: (endpoint, message) =>
      change(endpoint, ({ penalizedUntilMs }, now) => ({
        penalizedUntilMs: Math.max(penalizedUntilMs, now + pausedMs),
        message,
      })),
  };
}
