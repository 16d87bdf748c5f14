/** Export of a node's blocks to a file, and import from a file. */
import { sizeDelimitedDecodeStream, sizeDelimitedEncode } from "@bufbuild/protobuf/wire";
import { createReadStream, existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { type Block, BlockSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, ConsensusService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { InputError } from "../../base/errors/start-error.js";
import { privateFileMode } from "../../base/files/private-files.js";
import { decodeBlock } from "../../chain/transactions/transaction.js";
import { withControl } from "../calls/control.js";
import type { ControlFlags } from "../usage/flags.js";
import { startProgress } from "../terminal/progress.js";

/** No time limit: the export of a long chain takes longer than any other call of an operator. */
const noTimeout = { timeoutMs: 0 };

/** Appends the blocks that the file lacks. Returns their count, and the last block number of the file. */
export async function exportBlocks(flags: ControlFlags, file: string): Promise<{ exported: number; number: number }> {
  const path = resolve(file);
  return await withControl(flags, ChainService, async (chain) => {
    const { endBytes, number: start } = await findLastBlock(path);
    const head = Number((await chain.getHead({})).number);
    const target = await open(path, existsSync(path) ? "r+" : "wx", privateFileMode);
    const progress = startProgress("blocks", head, start);
    let number = start;
    let position = endBytes;
    try {
      // Remove an incomplete block of an interrupted export.
      await target.truncate(endBytes);
      for await (const { block } of chain.listBlocks({ fromNumber: BigInt(start + 1) }, noTimeout)) {
        const bytes = sizeDelimitedEncode(BlockSchema, block!);
        await target.write(bytes, 0, bytes.length, position);
        position += bytes.length;
        number++;
        progress.update(number);
      }
      await target.sync();
    } finally {
      progress.end();
      await target.close();
    }
    return { exported: number - start, number };
  });
}

/** Applies the blocks that the node lacks. Returns their count, and the block number of the node. */
export async function importBlocks(flags: ControlFlags, file: string): Promise<{ imported: number; number: number }> {
  const path = resolve(file);
  const start = await withControl(flags, ChainService, async (chain) => Number((await chain.getHead({})).number));
  const { number: last } = await findLastBlock(path);
  if (last === 0) {
    throw new InputError(`The file ${path} holds no blocks.`);
  }
  const progress = startProgress("blocks", last, Math.min(start, last));
  let imported = 0;
  try {
    await withControl(flags, ConsensusService, async (consensus) => {
      for await (const block of readBlocks(path)) {
        const number = numberOf(block);
        if (number > start) {
          await consensus.applyBlock({ block });
          imported++;
          progress.update(number);
        }
      }
    });
  } finally {
    progress.end();
  }
  return { imported, number: start + imported };
}

/** Returns the number of the last complete block of a file, and its end offset: 0 without a file. */
async function findLastBlock(path: string): Promise<{ endBytes: number; number: number }> {
  let endBytes = 0;
  let number = 0;
  try {
    for await (const block of existsSync(path) ? readBlocks(path) : []) {
      endBytes += sizeDelimitedEncode(BlockSchema, block).length;
      number = numberOf(block);
    }
  } catch {
    if (endBytes === 0) {
      throw new InputError(`The file ${path} is not a file of blocks; choose another file.`);
    }
  }
  return { endBytes, number };
}

function numberOf(block: Block): number {
  return Number(decodeBlock(block).header.number);
}

function readBlocks(path: string): AsyncIterable<Block> {
  return sizeDelimitedDecodeStream(BlockSchema, createReadStream(path));
}
