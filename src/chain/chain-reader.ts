/**
 * The chain of a node that only reads: somebody else applies the blocks, to the same database. It follows them, so that
 * what it remembers of the database is never older than the newest block that it tells of.
 */
import { RpcError } from "../rpc/errors.js";
import { type PeriodicTask, startPeriodicTask } from "../base/async/periodic-task.js";
import type { Chain } from "./chain.js";
import type { ChainHead, ChainStore } from "./blocks/store.js";
import { type BlockContent, readStoredBlock } from "./transactions/transaction.js";

/** A chain that reads the database again and again. */
export interface ChainReader extends Chain, PeriodicTask {}

/** What a reader needs. */
export interface ChainReaderDeps {
  readonly store: Pick<ChainStore, "head" | "block">;
  /** The newest block, as it was read last; undefined while the writer takes in a snapshot. */
  readonly head: ChainHead | undefined;
  readonly lookEveryMs: number;
  /** Hears of a block that somebody has applied, before it is the head. */
  readonly onApplied: (block: BlockContent) => void;
  /**
   * Hears that anything may have changed: many blocks came, the database is another one now, or there is no state in it any
   * more, or again, for the writer takes in a snapshot.
   */
  readonly onLeap: (isStateThere: boolean) => void;
  /** Hears that the head is another one, after one of the two. */
  readonly onMoved: (isLeap: boolean) => void;
  /** Hears of a look that failed; the head stays as it was until the next look. */
  readonly onError: (error: unknown) => void;
}

/** Of more new blocks than this, it is not asked what each of them changed. */
const mostFollowed = 20n;

/** Builds a reader, which looks for new blocks from now on. */
export function createChainReader(deps: ChainReaderDeps): ChainReader {
  const { store, lookEveryMs, onApplied, onLeap, onMoved, onError } = deps;
  let head: ChainHead | undefined = deps.head;

  /** What came after the head, up to another one; undefined when that is too much, or does not follow on it. */
  async function readUpTo(newest: ChainHead): Promise<BlockContent[] | undefined> {
    if (head === undefined || newest.number <= head.number || newest.number - head.number > mostFollowed) {
      return undefined;
    }
    const known = head;
    const blocks: BlockContent[] = [];
    for (let number = head.number + 1n; number <= newest.number; number++) {
      const stored = await store.block(number);
      if (stored === undefined) {
        return undefined;
      }
      blocks.push(readStoredBlock(stored.block));
    }
    return blocks[0]?.header.previousHash === known.hash ? blocks : undefined;
  }

  async function look(): Promise<void> {
    const newest = await store.head();
    if (newest?.hash === head?.hash) {
      return;
    }
    const blocks = newest && (await readUpTo(newest));
    // Nobody is answered in between: who hears of the new head gets nothing older.
    if (blocks === undefined) {
      onLeap(newest !== undefined);
    } else {
      blocks.forEach(onApplied);
    }
    head = newest;
    onMoved(blocks === undefined);
  }

  const looks = startPeriodicTask(look, lookEveryMs, onError);
  const refuse = (): Promise<never> =>
    Promise.reject(new RpcError("STATE_NOT_READY", "This node only reads; hand it to the node that writes."));
  return {
    head: () => head,
    announce: () => undefined,
    submit: refuse,
    apply: refuse,
    dryRun: refuse,
    seal: refuse,
    signHead: refuse,
    now: () => looks.now(),
    stop: () => looks.stop(),
  };
}
