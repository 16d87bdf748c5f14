/**
 * Redaction of blocks for each caller: replaces transactions that the caller may not read with their hashes, so the
 * block can still be verified. Every route that returns blocks uses this module.
 */
import { create } from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import { type Block, type Transaction, TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { mapYielding, requestWork } from "../../base/async/yielding.js";
import type { StoredBlock } from "./store-types.js";

/** Rules on read access to transactions. */
export interface ReadAccess {
  /**
   * Returns the name of the subject that controls read access to a transaction, from its body; undefined if it is
   * public.
   */
  subjectOf(body: Uint8Array): string | undefined;
  /**
   * Returns the subjects that the caller may read now.
   *
   * @param identity 0x and 64 lower-case hex digits; undefined for an anonymous caller.
   */
  readable(subjects: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
  /**
   * Returns true if a transaction itself permits the caller to read it before it is in a block. Its subject may not exist
   * until then, so no rule of the subject could permit anyone to read it.
   */
  permitsPending(body: Uint8Array, identity: string | undefined): boolean;
}

/** Content for one caller, without what the caller may not read. */
export interface Redacted<T> {
  readonly content: T;
  /** True if every caller always gets the same content, because no access rule applies to it. */
  readonly isPublic: boolean;
}

/** Redacts blocks and transaction bodies for a caller. */
export interface BlockRedactor {
  /** Redacts a stored block. */
  block(stored: StoredBlock, identity: string | undefined): Promise<Redacted<Block>>;
  /** Redacts the body of a transaction: `content` is undefined if the caller may not read it. */
  body(body: Uint8Array, identity: string | undefined): Promise<Redacted<Uint8Array | undefined>>;
  /** Redacts the body of a transaction that is not in a block yet. */
  pendingBody(body: Uint8Array, identity: string | undefined): Promise<Redacted<Uint8Array | undefined>>;
  /** Returns each body, or undefined if the caller may not read it. */
  bodies(bodies: readonly Uint8Array[], identity: string | undefined): Promise<(Uint8Array | undefined)[]>;
  /** Returns true for each subject that the caller may read, and for each undefined subject, which is public. */
  areReadable(subjects: readonly (string | undefined)[], identity: string | undefined): Promise<boolean[]>;
}

/** Redactor that withholds nothing, for callers with access to everything. */
export const revealAll: BlockRedactor = {
  block: ({ block }) => Promise.resolve({ content: block, isPublic: false }),
  body: (body) => Promise.resolve({ content: body, isPublic: false }),
  pendingBody: (body) => Promise.resolve({ content: body, isPublic: false }),
  bodies: (bodies) => Promise.resolve([...bodies]),
  areReadable: (subjects) => Promise.resolve(subjects.map(() => true)),
};

/**
 * Creates a redactor that applies the access rules.
 *
 * @param maxCacheBytes approximate limit on the cache of block subjects. Cached subjects stay valid, because they never
 * change.
 */
export function createBlockRedactor(access: ReadAccess, maxCacheBytes: number): BlockRedactor {
  const subjectsOf = cacheSubjects(access, maxCacheBytes);

  async function areReadable(subjects: readonly (string | undefined)[], identity: string | undefined) {
    const named = new Set(subjects.filter((subject) => subject !== undefined));
    const readable = await access.readable([...named], identity);
    return subjects.map((subject) => subject === undefined || readable.has(subject));
  }

  async function redactBody(body: Uint8Array, identity: string | undefined): Promise<Redacted<Uint8Array | undefined>> {
    const subject = access.subjectOf(body);
    const [isReadable] = await areReadable([subject], identity);
    return { content: isReadable! ? body : undefined, isPublic: subject === undefined };
  }

  return {
    async block(stored, identity) {
      const { block } = stored;
      const subjects = await subjectsOf(stored);
      const isReadable = await areReadable(subjects, identity);
      const transactions = block.transactions.map((one, i) => (isReadable[i]! ? one : withhold(one)));
      return { content: { ...block, transactions }, isPublic: subjects.every((subject) => subject === undefined) };
    },

    body: redactBody,
    pendingBody: async (body, identity) =>
      access.permitsPending(body, identity) ? { content: body, isPublic: false } : await redactBody(body, identity),

    async bodies(bodies, identity) {
      const subjects = await mapYielding(bodies, (body) => access.subjectOf(body), requestWork);
      const isReadable = await areReadable(subjects, identity);
      return bodies.map((body, i) => (isReadable[i]! ? body : undefined));
    },
    areReadable,
  };
}

function withhold({ body }: Transaction): Transaction {
  return create(TransactionSchema, { withheldHash: sha256(body) });
}

/** Approximate cache size of a block, and of each of its transactions, in bytes. */
const blockBytes = 500;
const subjectBytes = 80;

/** Creates the function that determines the subject of each transaction of a block, with a cache. */
function cacheSubjects(access: ReadAccess, maxCacheBytes: number) {
  const cache = new LRUCache<string, readonly (string | undefined)[]>({
    maxSize: maxCacheBytes,
    sizeCalculation: (subjects) => blockBytes + subjectBytes * subjects.length,
  });
  return async ({ hash, block }: StoredBlock): Promise<readonly (string | undefined)[]> => {
    const subjects =
      cache.get(hash) ?? (await mapYielding(block.transactions, ({ body }) => access.subjectOf(body), requestWork));
    cache.set(hash, subjects);
    return subjects;
  };
}
