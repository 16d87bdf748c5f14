/**
 * Caches programs in memory from their second read on. A single scan over all programs therefore neither fills the
 * cache nor evicts entries that others need. The cache stores database contents, not responses to callers: the access
 * rule is stored with a program and is checked for each read.
 */
import { LRUCache } from "lru-cache";
import { makeImmutable } from "../../base/caches/immutable.js";
import { AdmissionPolicy } from "../../base/caches/read-cache.js";
import { maxTextBytes } from "../documents/document-parts.js";
import { isHidden } from "./access.js";
import type { FieldPortion, ProgramReader, ProgramRecord, Programs } from "./programs.js";

/** Program with a part of it. */
interface Found {
  readonly record: ProgramRecord;
  readonly data?: string | undefined;
  readonly field?: FieldPortion | undefined;
}

/** Cached reads of one program, by the part that was read, and their estimated size. */
interface CachedProgram {
  readonly parts: Map<string, Found>;
  readonly bytes: number;
}

/** Estimated size of a cache entry without its texts, in bytes. */
const entryBytes = 2_000;
/** Limit on the cached parts of one program, so that requests for missing fields cannot fill the memory. */
const maxParts = 1_000;

/** Adds a cache of `maxBytes` in front of the reads of single programs. Lists are always read from the database. */
export function createProgramCache(programs: Programs, maxBytes: number) {
  const cache = new LRUCache<string, CachedProgram>({ maxSize: maxBytes, sizeCalculation: ({ bytes }) => bytes });
  const admission = new AdmissionPolicy();

  /** Stores a part, and returns it as an immutable value, so that all responses built from it share their bytes. */
  function store<T extends Found>(address: string, part: string, found: T): T {
    const known = cache.peek(address);
    const { parts, bytes } =
      known === undefined || known.parts.size >= maxParts
        ? { parts: new Map<string, Found>(), bytes: entryBytes + sizeOfRecord(found.record) }
        : known;
    // Each part has the same record, which is stored once.
    const record = parts.values().next().value?.record ?? found.record;
    const stored = makeImmutable({ ...found, record });
    parts.set(part, stored);
    cache.set(address, { parts, bytes: bytes + sizeOfPart(part, found) });
    return stored;
  }

  /** Finds a cached part; undefined also if the program is hidden from the reader, whose read must take as long. */
  function findCached(address: string, part: string, reader: ProgramReader | undefined): Found | undefined {
    const cached = cache.get(address)?.parts.get(part);
    return cached !== undefined && reader !== undefined && isHidden(cached.record.access, reader.identity)
      ? undefined
      : cached;
  }

  async function read<T extends Found>(
    address: string,
    part: string,
    reader: ProgramReader | undefined,
    find: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const cached = findCached(address, part, reader);
    return cached === undefined
      ? await admission.find(address, find, (found) => store(address, part, found), describeRead(part, reader))
      : (cached as T);
  }

  return {
    ...programs,

    findWithData: (address: string, reader?: ProgramReader) =>
      read(address, "data", reader, () => programs.findWithData(address, reader)),

    findWithField: (address: string, name: string, reader?: ProgramReader) =>
      read(address, fieldPart(name), reader, () => programs.findWithField(address, name, reader)),

    async findWithItem(address: string, name: string, index: number, reader?: ProgramReader) {
      const cached = findCached(address, fieldPart(name), reader);
      // In a large array, reading the chunk with the item is faster than finding the item in the full array.
      if (cached !== undefined && (cached.field?.value.length ?? 0) <= maxTextBytes) {
        return { record: cached.record, field: cached.field };
      }
      return await admission.find(
        address,
        () => programs.findWithItem(address, name, index, reader),
        (found) => (found.field?.chunk === undefined ? store(address, fieldPart(name), found) : found),
        describeRead(`item ${index} of ${name}`, reader),
      );
    },

    /** Removes a program, or all programs, from the cache. Call it once a change is in the database. */
    invalidate(address?: string): void {
      admission.changed();
      if (address === undefined) {
        cache.clear();
      } else {
        cache.delete(address);
      }
    },
  } satisfies Programs & { invalidate(address?: string): void };
}

/** Describes a read that only readers who see the same programs share. */
const describeRead = (part: string, reader: ProgramReader | undefined): string =>
  reader === undefined ? part : `${part} for ${reader.identity ?? "anyone"}`;

const fieldPart = (name: string): string => `field ${name}`;

/** Estimates the size of a record: its texts, at two bytes for each UTF-16 code unit. */
function sizeOfRecord({ metadata = "", access }: ProgramRecord): number {
  const groups = Object.values(access.groups).map(({ members }) => members);
  const keys = [access.allowed, access.blacklisted, ...groups].reduce((sum, list) => sum + list.length, 0);
  return 2 * (metadata.length + 80 * keys);
}

/**
 * Estimates the size of a part. A full document counts three times, because the responses built from it are cached as
 * well.
 */
function sizeOfPart(part: string, { data = "", field }: Found): number {
  return 2 * (part.length + 50 + 3 * data.length + (field?.value.length ?? 0));
}
