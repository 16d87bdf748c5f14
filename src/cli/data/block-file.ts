/** Export of a node's blocks to a file, and import from a file. */
import { type Client, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { sizeDelimitedDecodeStream, sizeDelimitedEncode } from "@bufbuild/protobuf/wire";
import { createReadStream, existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { resolve } from "node:path";
import { type Block, BlockSchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { ChainService, ConsensusService } from "../../../gen/gatehouse/chain/v1/chain_pb.js";
import { privateFileMode } from "../../base/files/private-files.js";
import { decodeBlock } from "../../chain/transactions/transaction.js";
import { withControl } from "../calls/control.js";
import { ExitError, exitCodes } from "../usage/errors.js";
import type { ControlFlags, NodeFlags } from "../usage/flags.js";
import { startProgress } from "../terminal/progress.js";

/** Appends the blocks that the file lacks. Returns their count, and the last block number of the file. */
export async function exportBlocks(flags: ControlFlags, file: string): Promise<{ exported: number; number: number }> {
  return await withControl(flags, (transport) => exportOver(transport, resolve(file)));
}

/**
 * Applies the blocks that the node lacks. Returns their count, and the block number of the node.
 *
 * @throws ExitError with code 3 if the node does not report its latest block.
 */
export async function importBlocks(
  flags: NodeFlags & ControlFlags,
  file: string,
): Promise<{ imported: number; number: number }> {
  try {
    return await importFrom(flags, resolve(file));
  } catch (error) {
    throw error instanceof ConnectError
      ? new ExitError(
          `The node at ${flags.node} rejected the request or does not respond: ${error.rawMessage}`,
          exitCodes.unreachable,
        )
      : error;
  }
}

/** No time limit: the export of a long chain takes longer than any other call of an operator. */
const noTimeout = { timeoutMs: 0 };

async function exportOver(transport: Transport, path: string): Promise<{ exported: number; number: number }> {
  const chain = createClient(ChainService, transport);
  const { endBytes, number: start } = existsSync(path) ? await findLastBlock(path) : { endBytes: 0, number: 0 };
  const head = Number((await chain.getHead({})).number);
  const file = await open(path, existsSync(path) ? "r+" : "wx", privateFileMode);
  const progress = startProgress("blocks", head, start);
  let number = start;
  let position = endBytes;
  try {
    // Remove an incomplete block of an interrupted export.
    await file.truncate(endBytes);
    for await (const { block } of chain.listBlocks({ fromNumber: BigInt(start + 1) }, noTimeout)) {
      const bytes = sizeDelimitedEncode(BlockSchema, block!);
      await file.write(bytes, 0, bytes.length, position);
      position += bytes.length;
      number++;
      progress.update(number);
    }
    await file.sync();
  } finally {
    progress.end();
    await file.close();
  }
  return { exported: number - start, number };
}

/** Returns the number of the last complete block of a file, and its end offset. */
async function findLastBlock(path: string): Promise<{ endBytes: number; number: number }> {
  let endBytes = 0;
  let number = 0;
  try {
    for await (const block of readBlocks(path)) {
      endBytes += sizeDelimitedEncode(BlockSchema, block).length;
      number = numberOf(block);
    }
  } catch (error) {
    if (endBytes === 0 || error instanceof ExitError) {
      throw new ExitError(`The file ${path} is not a file of blocks; choose another file.`, exitCodes.usage);
    }
  }
  return { endBytes, number };
}

async function importFrom(
  flags: NodeFlags & ControlFlags,
  path: string,
): Promise<{ imported: number; number: number }> {
  const chain: Client<typeof ChainService> = createClient(ChainService, createGrpcTransport({ baseUrl: flags.node }));
  const start = Number((await chain.getHead({})).number);
  const last = existsSync(path) ? (await findLastBlock(path)).number : 0;
  if (last === 0) {
    throw new ExitError(`The file ${path} holds no blocks.`, exitCodes.usage);
  }
  const progress = startProgress("blocks", last, Math.min(start, last));
  let imported = 0;
  try {
    await withControl(flags, async (transport) => {
      const consensus = createClient(ConsensusService, transport);
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

function numberOf(block: Block): number {
  return Number(decodeBlock(block).header.number);
}

function readBlocks(path: string): AsyncIterable<Block> {
  return sizeDelimitedDecodeStream(BlockSchema, createReadStream(path));
}
