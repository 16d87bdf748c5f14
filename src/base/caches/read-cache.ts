/** What the database said lately, in memory, where somebody tells when it may say something else. */
import { isImmutable, makeImmutable } from "./immutable.js";
import { createLruCache } from "./lru-cache.js";

export interface ReadCache<Found extends object> {
  /** At once what is remembered, otherwise a promise of what is found. */
  read(key: string): Found | Promise<Found>;
  /** Forgets one key, or everything, once a change of it is in the database. */
  forget(key?: string): void;
}

/** How many different keys lie between two reads of one before it counts as read for the first time again. */
const rememberedReads = 20_000;

/**
 * Tells whether a key was asked about before. What is read once only is not worth keeping: it would fill the memory and
 * drive out what is read again and again.
 */
function createMemoryOfReads(): (key: string) => boolean {
  let recent = new Set<string>();
  let older = new Set<string>();
  return (key) => {
    if (recent.has(key) || older.has(key)) {
      return true;
    }
    recent.add(key);
    if (recent.size >= rememberedReads) {
      [older, recent] = [recent, new Set()];
    }
    return false;
  };
}

/** The admission policy of a cache: which reads it keeps. */
export interface AdmissionPolicy {
  /**
   * Finds, and hands to `keep` what was read again and is there, unless a change came in between. Who asks while the
   * same is being found shares it, if nothing has changed since that began.
   *
   * @param what which of several things about the key is found.
   */
  find<Found>(
    key: string,
    find: () => Promise<Found>,
    keep: (found: NonNullable<Found>) => void,
    what?: string,
  ): Promise<Found>;
  /** Tells that something changed: what is being read now is not kept. */
  changed(): void;
}

/** The admission policy of every cache before the database: what is read for the second time is kept. */
export function createAdmissionPolicy(): AdmissionPolicy {
  const isReadAgain = createMemoryOfReads();
  /** What is being found. */
  const flights = new Map<string, { readonly generation: number; readonly result: Promise<unknown> }>();
  let generation = 0;
  return {
    async find<Found>(
      key: string,
      find: () => Promise<Found>,
      keep: (found: NonNullable<Found>) => void,
      what = "",
    ): Promise<Found> {
      const name = `${what} ${key}`;
      const flight = flights.get(name);
      if (flight?.generation === generation) {
        isReadAgain(key);
        return (await flight.result) as Found;
      }
      const before = generation;
      const result = find().then((found) => {
        if (found !== undefined && found !== null && isReadAgain(key) && generation === before) {
          keep(found);
        }
        return found;
      });
      const own = { generation, result };
      flights.set(name, own);
      try {
        return await result;
      } finally {
        if (flights.get(name) === own) {
          flights.delete(name);
        }
      }
    },
    changed() {
      generation++;
    },
  };
}

/** Remembers what was found for up to `max` keys, from their second read on, and makes it immutable. */
export function createReadCache<Found extends object>(
  find: (key: string) => Promise<Found>,
  max: number,
): ReadCache<Found> {
  const cache = createLruCache<Found>(max);
  const admission = createAdmissionPolicy();
  return {
    read: (key) =>
      cache.get(key) ??
      admission.find(
        key,
        () => find(key),
        (found) => cache.set(key, makeImmutable(found)),
      ),
    forget(key) {
      admission.changed();
      if (key === undefined) {
        cache.clear();
      } else {
        cache.delete(key);
      }
    },
  };
}

/**
 * Makes answers of values. An immutable value is one that a cache keeps, and so is found again as the same object: its
 * answer is made once, and immutable as well, so that it is also encoded once.
 */
export function answerOnce<Value extends object, Answer extends object>(
  make: (value: Value) => Answer,
): (value: Value) => Answer {
  const answers = new WeakMap<Value, Answer>();
  return (value) => {
    let answer = answers.get(value);
    if (answer === undefined) {
      answer = make(value);
      if (isImmutable(value)) {
        answers.set(value, makeImmutable(answer));
      }
    }
    return answer;
  };
}
