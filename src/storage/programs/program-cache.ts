/**
 * Programs that are read again and again, in memory. A program is kept from its second read on: whoever reads all of
 * them once neither fills the memory nor drives out what others need. What it keeps is what the database said and no caller's answer: the access
 * rule comes along, and is asked anew for each read.
 */
import { LRUCache } from "lru-cache";
import { makeImmutable } from "../../base/caches/immutable.js";
import { createAdmissionPolicy } from "../../base/caches/read-cache.js";
import { maxTextBytes } from "../documents/document-parts.js";
import type { Field, ProgramRecord, Programs, WholeProgram } from "./programs.js";

/** Programs with a cache before them. */
export interface CachedPrograms extends Programs {
  /** Forgets what is known of a program, or of all, once a change of it is in the database. */
  invalidate(address?: string): void;
}

/** What is known of one program; a part is undefined until it was asked for. */
interface Known {
  readonly record: ProgramRecord;
  readonly whole?: WholeProgram;
  readonly names?: string[];
  readonly fields: ReadonlyMap<string, Field | undefined>;
}

/** Roughly what an entry costs beside its texts. */
const entryBytes = 2_000;
/** Most fields of one program that are kept, so that asking for names that are not there fills no memory. */
const maxFields = 1_000;

const noFields: ReadonlyMap<string, Field | undefined> = new Map();

/** Puts a cache of so many bytes before the reads of single programs; lists are always read. */
export function createProgramCache(programs: Programs, maxBytes: number): CachedPrograms {
  const { cache, read, fieldsOf, learnField, forget } = createMemory(maxBytes);

  return {
    async findWithData(address) {
      const known = cache.get(address);
      if (known?.whole !== undefined) {
        return known.whole;
      }
      return await read(
        address,
        () => programs.findWithData(address),
        (whole) => ({ whole: makeImmutable(whole), fields: fieldsOf(address) }),
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
      // Of a large array the chunk with the item is found faster than the item in all of the array.
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

/** What is remembered, and how it comes and goes. */
function createMemory(maxBytes: number) {
  const cache = new LRUCache<string, Known>({ maxSize: maxBytes, sizeCalculation: sizeOf });
  const admission = createAdmissionPolicy();

  /** @param learn what of it is kept; undefined for nothing. */
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

/** Bytes of the texts, two for each UTF-16 unit at most. A whole document counts three times: its answers are kept as well. */
function sizeOf({ record, whole, names = [], fields }: Known): number {
  let units = (record.metadata?.length ?? 0) + 3 * (whole?.data?.length ?? 0);
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
