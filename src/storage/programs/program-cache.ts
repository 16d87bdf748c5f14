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
interface Known {
  readonly record: ProgramRecord;
  readonly full?: FullProgram;
  readonly names?: string[];
  readonly fields: ReadonlyMap<string, Field | undefined>;
}

/** Estimated size of a cache entry without its texts, in bytes. */
const entryBytes = 2_000;
/** Limit on the cached fields of one program, so that requests for missing names cannot fill the memory. */
const maxFields = 1_000;

const noFields: ReadonlyMap<string, Field | undefined> = new Map();

/** Adds a cache of `maxBytes` in front of the reads of single programs. Lists are always read from the database. */
export function createProgramCache(programs: Programs, maxBytes: number): CachedPrograms {
  const { cache, read, fieldsOf, learnField, forget } = createMemory(maxBytes);

  return {
    async findWithData(address) {
      const known = cache.get(address);
      if (known?.full !== undefined) {
        return known.full;
      }
      return await read(
        address,
        () => programs.findWithData(address),
        (full) => ({ full: makeImmutable(full), fields: fieldsOf(address) }),
        "data",
      );
    },

    async findWithFieldNames(address) {
      const known = cache.get(address);
      if (known?.names !== undefined) {
        return { record: known.record, names: known.names };
      }
      return await read(
        address,
        () => programs.findWithFieldNames(address),
        ({ names }) => ({ names, fields: fieldsOf(address) }),
        "names",
      );
    },

    async findWithField(address, name) {
      const known = cache.get(address);
      if (known?.fields.has(name) === true) {
        return { record: known.record, field: known.fields.get(name) };
      }
      return await read(
        address,
        () => programs.findWithField(address, name),
        ({ field }) => learnField(address, name, field),
        `field ${name}`,
      );
    },

    async findWithItem(address, name, index) {
      const known = cache.get(address);
      const field = known?.fields.get(name);
      // In a large array, reading the chunk with the item is faster than finding the item in the full array.
      if (known?.fields.has(name) === true && (field?.value.length ?? 0) <= maxTextBytes) {
        return { record: known.record, field };
      }
      return await read(
        address,
        () => programs.findWithItem(address, name, index),
        ({ field: found }) => (found?.chunk === undefined ? learnField(address, name, found) : undefined),
        `item ${index} of ${name}`,
      );
    },

    listByOwner: (owner, identity, page) => programs.listByOwner(owner, identity, page),
    search: (query, exact, identity, page) => programs.search(query, exact, identity, page),
    createdCount: () => programs.createdCount(),

    invalidate: forget,
  };
}

/** Creates the cache, with the functions that fill and invalidate it. */
function createMemory(maxBytes: number) {
  const cache = new LRUCache<string, Known>({ maxSize: maxBytes, sizeCalculation: sizeOf });
  const admission = createAdmissionPolicy();

  /**
   * Reads a program and caches it if the admission policy permits.
   *
   * @param learn returns the parts to cache; undefined to cache nothing.
   */
  async function read<T extends { readonly record: ProgramRecord }>(
    address: string,
    find: () => Promise<T | undefined>,
    learn: (found: T) => Omit<Known, "record"> | undefined,
    what: string,
  ): Promise<T | undefined> {
    return await admission.find(
      address,
      find,
      (found) => {
        const learned = learn(found);
        if (learned !== undefined) {
          cache.set(address, { ...cache.peek(address), record: found.record, ...learned });
        }
      },
      what,
    );
  }

  const fieldsOf = (address: string): ReadonlyMap<string, Field | undefined> => cache.peek(address)?.fields ?? noFields;

  function learnField(address: string, name: string, field: Field | undefined): Pick<Known, "fields"> {
    const fields = fieldsOf(address);
    return { fields: fields.size < maxFields ? new Map(fields).set(name, field) : new Map([[name, field]]) };
  }

  function forget(address?: string): void {
    admission.changed();
    if (address === undefined) {
      cache.clear();
    } else {
      cache.delete(address);
    }
  }

  return { cache, read, fieldsOf, learnField, forget };
}

/**
 * Estimates the size of an entry: its texts, at two bytes for each UTF-16 code unit. A full document counts three
 * times, because the responses built from it are cached as well.
 */
function sizeOf({ record, full, names = [], fields }: Known): number {
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
