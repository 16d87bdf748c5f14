/** Blocks in the node-call interface. */
import { latestBlock } from "../../base/latest-block.js";
import { type Json, toPlainJson } from "../../base/text/parse-json.js";
import { maxListBytes } from "../../base/limits/response-limits.js";
import { createSerialQueue } from "../../base/async/serial-queue.js";
import { yieldToEventLoop } from "../../base/async/yielding.js";
import { RpcError } from "../errors.js";
import type { CallByName } from "../json-rpc/json-rpc.js";

/** Limit on the blocks of one getBlocks. */
const maxBlocks = 50;

/** Queue that builds one list of blocks at a time, however many are requested. */
const queue = createSerialQueue();

/** Members of a chain.getBlock response that existing clients expect in other places. */
interface BlockMembers {
  readonly header: { readonly number: number; readonly previousHash: string; readonly timestamp: number } & {
    readonly proposer: string;
  };
  readonly transactionHashes: readonly string[];
}

/** Returns the JSON text of an object with additional members before its own members, whose text stays unchanged. */
export function withMembers(object: string, members: object): string {
  const first = JSON.stringify(members).slice(1, -1);
  const rest = object.slice(1);
  return `{${first}${rest === "}" ? "" : ","}${rest}`;
}

/** Returns a block as chain.getBlock does, with additional members first that existing clients read. */
export function describeBlock(block: string): string {
  const { header, transactionHashes } = JSON.parse(block) as BlockMembers;
  const { number, previousHash, timestamp, proposer } = header;
  return withMembers(block, {
    ...{ number, status: "confirmed", proposer },
    content: { ordered_transactions: transactionHashes, previousHash, timestamp },
  });
}

/**
 * Returns blocks from `start` on, or the latest blocks if `start` is 0, "latest" or the number that stands for it, in
 * ascending order.
 *
 * The list holds as many blocks as fit into one response, and at least one. With a start number the last blocks are
 * dropped, otherwise the first ones.
 */
export function listBlocks(call: CallByName, range: { start?: unknown; limit?: unknown }): Promise<string> {
  return queue(() => buildList(call, range));
}

async function buildList(call: CallByName, range: { start?: unknown; limit?: unknown }): Promise<string> {
  const [start, limit] = [range.start, range.limit].map((value) => toPlainJson(value as Json));
  const count = Math.min(typeof limit === "number" && limit > 0 ? Math.floor(limit) : maxBlocks, maxBlocks);
  const latest = (JSON.parse(await call("chain.getHead", {})) as { number: number }).number;
  const from = typeof start === "number" && start > 0 && start < Number(latestBlock) ? start : undefined;
  const first = from ?? Math.max(1, latest - count + 1);
  const last = from === undefined ? latest : Math.min(from + count - 1, latest);
  const numbers = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const blocks =
    from === undefined ? (await readUpToLimit(call, numbers.reverse())).reverse() : await readUpToLimit(call, numbers);
  return `[${blocks.join(",")}]`;
}

/** Reads as many of these blocks, in order, as fit into one response. */
async function readUpToLimit(call: CallByName, numbers: readonly number[]): Promise<string[]> {
  const blocks: string[] = [];
  let bytes = 0;
  for (const number of numbers) {
    try {
      const block = describeBlock(await call("chain.getBlock", { number }));
      bytes += Buffer.byteLength(block);
      if (blocks.length > 0 && bytes > maxListBytes) {
        break;
      }
      blocks.push(block);
    } catch (error) {
      // A single block that is too large is rejected with that reason.
      if (blocks.length > 0 && error instanceof RpcError && error.reason === "ANSWER_TOO_LARGE") {
        break;
      }
      throw error;
    }
    if (bytes >= maxListBytes) {
      break;
    }
    await yieldToEventLoop();
  }
  return blocks;
}
