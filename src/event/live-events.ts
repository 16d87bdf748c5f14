/** What happens outside of blocks: told to those who watch at the moment, and kept for no longer than that takes. */
import type { EventMessage, EventSubject } from "./block-events.js";

/** One of them; where it is in the stream, its reader knows. */
export interface LiveEvent extends EventSubject {
  /** One more than that of the event before. */
  readonly sequence: number;
  readonly event: NonNullable<EventMessage["event"]>;
}

/** The newest of them. */
export interface LiveEvents {
  /** Of the newest; 0 while there is none. */
  readonly newest: number;
  add(event: Omit<LiveEvent, "sequence">): void;
  /** The oldest that is kept after this one; undefined where there is none. */
  after(sequence: number): LiveEvent | undefined;
}

/** Whoever is behind by more does not hear of what is in no block: a node rejects so many in a moment of trouble. */
const mostKept = 1_024;

/** Nothing has happened yet. */
export function createLiveEvents(): LiveEvents {
  const kept: LiveEvent[] = [];
  let newest = 0;
  return {
    get newest() {
      return newest;
    },
    add(event) {
      newest++;
      kept[newest % mostKept] = { ...event, sequence: newest };
    },
    after(sequence) {
      return sequence >= newest ? undefined : kept[Math.max(sequence + 1, newest - mostKept + 1) % mostKept];
    },
  };
}
