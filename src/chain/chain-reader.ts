/**
 * Chain of a read-only node, which polls the database that another node writes. Its caches are updated before a new
 * head is visible, so no response is older than the head that the node reports.
 */
import { RpcError } from "../rpc/errors.js";
import { type PeriodicTask, startPeriodicTask } from "../base/async/periodic-task.js";
import type { Chain } from "./chain.js";
import type { ChainStore } from "./blocks/store.js";
import type { ChainHead } from "./blocks/store-types.js";
import { type BlockContent, decodeBlockContent } from "./transactions/transaction.js";

/** Read-only chain that polls the database for new blocks. */
export type ChainReader = Chain & PeriodicTask;

export interface ChainReaderDeps {
  readonly store: Pick<ChainStore, "head" | "block">;
  /** Head when the node started; undefined while the writer runs a snapshot sync. */
  readonly head: ChainHead | undefined;
  readonly pollIntervalMs: number;
  /** Called for each new block that the writer applied, in order, before that block becomes the head. */
  readonly onApplied: (block: BlockContent) => void;
  /**
   * Called instead of `onApplied` when any state may have changed. Either too many blocks came at once, the database
   * was replaced, or a snapshot sync of the writer removed or completed the state.
   */
  readonly onReset: (hasState: boolean) => void;
  /** Called once the head has changed, after `onApplied` or `onReset`. */
  readonly onHeadChanged: (isReset: boolean) => void;
  /** Called when a poll fails; the head stays unchanged until a poll succeeds. */
  readonly onError: (error: unknown) => void;
}

/** Limit on new blocks that one poll reads; above this limit, `onReset` replaces `onApplied`. */
const maxNewBlocks = 20n;

/** Creates a read-only chain and starts polling. */
export function createChainReader(deps: ChainReaderDeps): ChainReader {
  const { store, pollIntervalMs, onApplied, onReset, onHeadChanged, onError } = deps;
  let { head } = deps;

  /**
   * Returns the blocks after the head up to the latest one. Returns undefined if there are more than
   * {@link maxNewBlocks}, if one of them is missing, or if they do not extend the head.
   */
  async function readNewBlocks(latest: ChainHead): Promise<BlockContent[] | undefined> {
    const previous = head;
    if (previous === undefined || latest.number <= previous.number || latest.number - previous.number > maxNewBlocks) {
      return undefined;
    }
    const blocks: BlockContent[] = [];
    for (let number = previous.number + 1n; number <= latest.number; number++) {
      const stored = await store.block(number);
      if (stored === undefined) {
        return undefined;
      }
      blocks.push(decodeBlockContent(stored.block));
    }
    return blocks[0]?.header.previousHash === previous.hash ? blocks : undefined;
  }

  async function poll(): Promise<void> {
    const latest = await store.head();
    if (latest?.hash === head?.hash) {
      return;
    }
    const blocks = latest && (await readNewBlocks(latest));
    // No `await` between here and `onHeadChanged`: a client that sees the new head must get no older data.
    if (blocks === undefined) {
      onReset(latest !== undefined);
    } else {
      blocks.forEach(onApplied);
    }
    head = latest;
    onHeadChanged(blocks === undefined);
  }

  const polls = startPeriodicTask(poll, pollIntervalMs, onError);
  const reject = (): Promise<never> =>
    Promise.reject(new RpcError("STATE_NOT_READY", "This node is read-only; submit the transaction to the writer."));
  return {
    head: () => head,
    precheck: () => undefined,
    submit: reject,
    apply: reject,
    dryRun: reject,
    produceBlock: reject,
    signHead: reject,
    now: () => polls.now(),
    stop: () => polls.stop(),
  };
}
