/**
 * What of a block is told to whom: the transactions that a caller may read, and of the others their hashes, with which the
 * block can still be checked. Every route that gives blocks goes through here.
 */
import { create } from "@bufbuild/protobuf";
import { LRUCache } from "lru-cache";
import { type Block, type Transaction, TransactionSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../base/crypto/hash.js";
import { mapYielding } from "../../base/async/yielding.js";
import type { StoredBlock } from "./store.js";

/** Says who may read transactions. */
export interface Readership {
  /** What decides on who may read a transaction, by its body: a name; undefined where everybody may. */
  subjectOf(body: Uint8Array): string | undefined;
  /**
   * Those of the subjects that the caller may read now.
   *
   * @param identity 0x and 64 lower-case hex digits; undefined for an anonymous caller.
   */
  readable(subjects: readonly string[], identity: string | undefined): Promise<ReadonlySet<string>>;
}

/** What a caller may have of something. */
export interface RedactedBlock<T> {
  readonly disclosed: T;
  /** Everybody may have the same, and always: no rule has a say in it. */
  readonly isEverybodys: boolean;
}

/** Gives what a caller may have. */
export interface BlockRedactor {
  /** Of a block of the database. */
  block(stored: StoredBlock, identity: string | undefined): Promise<RedactedBlock<Block>>;
  /** What a transaction says, by its body; undefined where the caller may not read it. */
  body(body: Uint8Array, identity: string | undefined): Promise<RedactedBlock<Uint8Array | undefined>>;
  /** The same of many. */
  bodies(bodies: readonly Uint8Array[], identity: string | undefined): Promise<(Uint8Array | undefined)[]>;
  /** Whether the caller may read each of the transactions that these decide on; undefined for those that everybody may. */
  areReadable(subjects: readonly (string | undefined)[], identity: string | undefined): Promise<boolean[]>;
}

/** For those who may have everything. */
export const revealAll: BlockRedactor = {
  block: ({ block }) => Promise.resolve({ disclosed: block, isEverybodys: false }),
  body: (body) => Promise.resolve({ disclosed: body, isEverybodys: false }),
  bodies: (bodies) => Promise.resolve([...bodies]),
  areReadable: (subjects) => Promise.resolve(subjects.map(() => true)),
};

/**
 * Discloses what may be read.
 *
 * @param maxKeptBytes what is kept of blocks that were read lately, and roughly what it takes: their subjects never change.
 */
export function createBlockRedactor(readership: Readership, maxKeptBytes: number): BlockRedactor {
  const subjectsOf = createSubjects(readership, maxKeptBytes);

  async function areReadable(subjects: readonly (string | undefined)[], identity: string | undefined) {
    const named = new Set(subjects.filter((subject) => subject !== undefined));
    const readable = await readership.readable([...named], identity);
    return subjects.map((subject) => subject === undefined || readable.has(subject));
  }

  async function bodies(given: readonly Uint8Array[], identity: string | undefined) {
    const areThey = await areReadable(await mapYielding(given, (body) => readership.subjectOf(body)), identity);
    return given.map((body, i) => (areThey[i]! ? body : undefined));
  }

  return {
    async block(stored, identity) {
      const { block } = stored;
      const { each, all } = await subjectsOf(stored);
      const readable = await readership.readable(all, identity);
      const isReadable = (subject: string | undefined): boolean => subject === undefined || readable.has(subject);
      const transactions = block.transactions.map((one, i) => (isReadable(each[i]) ? one : withhold(one)));
      return { disclosed: { ...block, transactions }, isEverybodys: all.length === 0 };
    },

    async body(body, identity) {
      const subject = readership.subjectOf(body);
      const [isReadable] = await areReadable([subject], identity);
      return { disclosed: isReadable! ? body : undefined, isEverybodys: subject === undefined };
    },
    bodies,
    areReadable,
  };
}

function withhold({ body }: Transaction): Transaction {
  return create(TransactionSchema, { withheldHash: sha256(body) });
}

/** The subjects of a block's transactions. */
interface Subjects {
  readonly each: readonly (string | undefined)[];
  /** Without repetitions. */
  readonly all: readonly string[];
}

/** Roughly what is kept of a block, and of each of its subjects. */
const blockBytes = 500;
const subjectBytes = 80;

function createSubjects(readership: Readership, maxKeptBytes: number): (stored: StoredBlock) => Promise<Subjects> {
  const kept = new LRUCache<string, Subjects>({
    maxSize: maxKeptBytes,
    sizeCalculation: ({ each }) => blockBytes + subjectBytes * each.length,
  });
  return async ({ hash, block }) => {
    const known = kept.get(hash);
    if (known !== undefined) {
      return known;
    }
    const each = await mapYielding(block.transactions, ({ body }) => readership.subjectOf(body));
    const subjects = { each, all: [...new Set(each.filter((subject) => subject !== undefined))] };
    kept.set(hash, subjects);
    return subjects;
  };
}
