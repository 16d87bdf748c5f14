/** Blocks in the node-call interface. */
import { latestBlock } from "../../base/latest-block.js";
import { type Json, toPlainJson } from "../../base/text/parse-json.js";
import { maxListBytes } from "../../base/limits/response-limits.js";
import { createSerialQueue } from "../../base/async/serial-queue.js";
import { requestWork, yieldToEventLoop } from "../../base/async/yielding.js";
import { RpcError } from "../errors.js";
import { invalidValue } from "../parameters.js";
import type { CallByName } from "../json-rpc/json-rpc.js";

/** Limit on the blocks of one getBlocks. */
const maxBlocks = 50;

/** Reasons of a block that end the list before it. */
const endReasons: ReadonlySet<string> = new Set(["ANSWER_TOO_LARGE", "PRUNED"]);

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
 * Returns blocks from `start` down, latest first, as the network's nodes do. Without `start`, or with "latest" or the
 * number that stands for it, starts with the latest block. The list holds as many blocks as fit into one response, and at
 * least one, if there are any.
 *
 * @throws RpcError INVALID_REQUEST; PRUNED if the first block is no longer stored.
 */
export function listBlocks(call: CallByName, range: { start?: unknown; limit?: unknown }): Promise<string> {
  const start = readStart(range.start);
  const count = readCount("limit", range.limit, maxBlocks);
  return queue(() => buildList(call, start, count));
}

/** Returns the number at which a list starts; undefined for the latest. Throws RpcError INVALID_REQUEST. */
function readStart(value: unknown): number | undefined {
  const start = toPlainJson(value as Json);
  if (start === undefined || start === "latest" || start === Number(latestBlock)) {
    return undefined;
  }
  if (!Number.isSafeInteger(start) || (start as number) < 0) {
    throw invalidValue("start", "a whole number from 0, or latest", start);
  }
  return start as number;
}

/** Returns a number of items, at most `max`; `max` if it is unset. Throws RpcError INVALID_REQUEST. */
export function readCount(name: string, value: unknown, max: number): number {
  const count = toPlainJson(value as Json);
  if (count === undefined) {
    return max;
  }
  if (!Number.isSafeInteger(count) || (count as number) < 1) {
    throw invalidValue(name, "a whole number from 1", count);
  }
  return Math.min(count as number, max);
}

async function buildList(call: CallByName, start: number | undefined, count: number): Promise<string> {
  const latest = (JSON.parse(await call("chain.getHead", {})) as { number: number }).number;
  const first = Math.min(start ?? latest, latest);
  // The list ends with block 1, since block 0 is the genesis.
  const numbers = Array.from({ length: Math.min(count, first) }, (_, i) => first - i);
  return `[${(await readUpToLimit(call, numbers)).join(",")}]`;
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
      // A first block that is too large, or not stored, is rejected with that reason.
      if (blocks.length > 0 && error instanceof RpcError && endReasons.has(error.reason)) {
        break;
      }
      throw error;
    }
    if (bytes >= maxListBytes) {
      break;
    }
    await yieldToEventLoop(requestWork);
  }
  return blocks;
}
