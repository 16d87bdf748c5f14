/**
 * Live events: events outside of blocks, such as rejections and signed heads. They are sent to current subscribers
 * only, and not stored.
 */
import type { EventMessage, EventSubject } from "./block-events.js";

/** Live event. It has no cursor of its own: its message carries the position of each subscriber. */
export interface LiveEvent extends EventSubject {
  /** Sequence number, 1 higher than that of the previous event. */
  readonly sequence: number;
  readonly event: NonNullable<EventMessage["event"]>;
}

/** Ring buffer of the latest live events. */
export interface LiveEvents {
  /** Sequence number of the latest event; 0 if there is none. */
  readonly latest: number;
  add(event: Omit<LiveEvent, "sequence">): void;
  /** Returns the oldest buffered event after a sequence number; undefined if there is none. */
  after(sequence: number): LiveEvent | undefined;
}

/**
 * Capacity of the buffer, for a burst of rejections. A subscriber that falls further behind misses the oldest events.
 */
const maxBuffered = 1_024;

/** Creates an empty buffer. */
export function createLiveEvents(): LiveEvents {
  const buffered: LiveEvent[] = [];
  let latest = 0;
  return {
    get latest() {
      return latest;
    },
    add(event) {
      latest++;
      buffered[latest % maxBuffered] = { ...event, sequence: latest };
    },
    after(sequence) {
      return sequence >= latest ? undefined : buffered[Math.max(sequence + 1, latest - maxBuffered + 1) % maxBuffered];
    },
  };
}
