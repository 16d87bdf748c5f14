/**
 * Caches programs in memory from their second read on. A single scan over all programs therefore neither fills the
 * cache nor evicts entries that others need. The cache stores database contents, not responses to callers: the access
 * rule is stored with a program and is checked for each read.
 */
import { LRUCache } from "lru-cache";
import { makeImmutable } from "../../base/caches/immutable.js";
import { createAdmissionPolicy } from "../../base/caches/read-cache.js";
import { maxTextBytes } from "../documents/document-parts.js";
import type { Field, ProgramRecord, Programs, FullProgram } from "./programs.js";

/** Programs with a cache in front of the reads. */
export interface CachedPrograms extends Programs {
  /** Removes a program, or all programs, from the cache. Call it once a change is in the database. */
  invalidate(address?: string): void;
}

/** Cached contents of one program. A part is undefined until a caller requests it. */
interface CachedProgram {
  readonly record: ProgramRecord;
  readonly full?: FullProgram;
  readonly names?: string[];
  readonly fields: ReadonlyMap<string, Field | undefined>;
}

/** Estimated size of a cache entry without its texts, in bytes. */
const entryBytes = 2_000;
/** Limit on the cached fields of one program, so that requests for missing names cannot fill the memory. */
const maxFields = 1_000;

const emptyFields: ReadonlyMap<string, Field | undefined> = new Map();

/** Adds a cache of `maxBytes` in front of the reads of single programs. Lists are always read from the database. */
export function createProgramCache(programs: Programs, maxBytes: number): CachedPrograms {
  const { cache, read, fieldsOf, withField, invalidate } = createCache(maxBytes);

  return {
    async findWithData(address) {
      const cached = cache.get(address);
      if (cached?.full !== undefined) {
        return cached.full;
      }
      return await read(
        address,
        () => programs.findWithData(address),
        (full) => ({ full: makeImmutable(full), fields: fieldsOf(address) }),
        "data",
      );
    },

    async findWithFieldNames(address) {
      const cached = cache.get(address);
      if (cached?.names !== undefined) {
        return { record: cached.record, names: cached.names };
      }
      return await read(
        address,
        () => programs.findWithFieldNames(address),
        ({ names }) => ({ names, fields: fieldsOf(address) }),
        "names",
      );
    },

    async findWithField(address, name) {
      const cached = cache.get(address);
      if (cached?.fields.has(name) === true) {
        return { record: cached.record, field: cached.fields.get(name) };
      }
      return await read(
        address,
        () => programs.findWithField(address, name),
        ({ field }) => withField(address, name, field),
        `field ${name}`,
      );
    },

    async findWithItem(address, name, index) {
      const cached = cache.get(address);
      const field = cached?.fields.get(name);
      // In a large array, reading the chunk with the item is faster than finding the item in the full array.
      if (cached?.fields.has(name) === true && (field?.value.length ?? 0) <= maxTextBytes) {
        return { record: cached.record, field };
      }
      return await read(
        address,
        () => programs.findWithItem(address, name, index),
        ({ field: found }) => (found?.chunk === undefined ? withField(address, name, found) : undefined),
        `item ${index} of ${name}`,
      );
    },

    listByOwner: (owner, identity, page) => programs.listByOwner(owner, identity, page),
    search: (query, exact, identity, page) => programs.search(query, exact, identity, page),
    createdCount: () => programs.createdCount(),

    invalidate,
  };
}

/** Creates the cache, with the functions that fill and invalidate it. */
function createCache(maxBytes: number) {
  const cache = new LRUCache<string, CachedProgram>({ maxSize: maxBytes, sizeCalculation: sizeOf });
  const admission = createAdmissionPolicy();

  /**
   * Reads a program and caches it if the admission policy permits.
   *
   * @param toCached returns the parts to cache; undefined to cache nothing.
   * @param part part of the program that is read; the admission policy counts the reads of each part.
   */
  async function read<T extends { readonly record: ProgramRecord }>(
    address: string,
    find: () => Promise<T | undefined>,
    toCached: (found: T) => Omit<CachedProgram, "record"> | undefined,
    part: string,
  ): Promise<T | undefined> {
    return await admission.find(
      address,
      find,
      (found) => {
        const parts = toCached(found);
        if (parts !== undefined) {
          cache.set(address, { ...cache.peek(address), record: found.record, ...parts });
        }
      },
      part,
    );
  }

  const fieldsOf = (address: string): ReadonlyMap<string, Field | undefined> =>
    cache.peek(address)?.fields ?? emptyFields;

  /** Returns the cached fields of a program with one more field. Starts over if the limit is reached. */
  function withField(address: string, name: string, field: Field | undefined): Pick<CachedProgram, "fields"> {
    const fields = fieldsOf(address);
    return { fields: fields.size < maxFields ? new Map(fields).set(name, field) : new Map([[name, field]]) };
  }

  function invalidate(address?: string): void {
    admission.changed();
    if (address === undefined) {
      cache.clear();
    } else {
      cache.delete(address);
    }
  }

  return { cache, read, fieldsOf, withField, invalidate };
}

/**
 * Estimates the size of an entry: its texts, at two bytes for each UTF-16 code unit. A full document counts three
 * times, because the responses built from it are cached as well.
 */
function sizeOf({ record, full, names = [], fields }: CachedProgram): number {
  let units = (record.metadata?.length ?? 0) + 3 * (full?.data?.length ?? 0);
  for (const name of names) {
    units += name.length + 20;
  }
  for (const [name, field] of fields) {
    units += name.length + (field?.value.length ?? 0) + 50;
  }
  const { allowed, blacklisted, groups } = record.access;
  const keys =
    allowed.length + blacklisted.length + Object.values(groups).reduce((sum, g) => sum + g.members.length, 0);
  return entryBytes + 2 * (units + 80 * keys);
}
