/** Directories of measured nodes, and blocks that are made and applied without a node. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Block } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { nodeKeyPath } from "../../src/base/crypto/node-key.js";
import type { Chain } from "../../src/chain/chain.js";
import type { Database } from "../../src/db/queries/database.js";
import { migrate } from "../../src/node/migrations/migrate.js";
import { openDatabase } from "../../src/db/open.js";
import { type ChainSettings, openChain } from "../../test/helpers/chain/chain.js";
import { genesisOf, testKey, writeKey } from "../../test/helpers/chain/keys.js";
import { createPublic, type Operation, signTransaction } from "../../test/helpers/chain/transactions.js";

/** The authority of all measured chains. */
export const authority = testKey(1);

/** A peer that rejects connections: the main loop runs, but no other node affects the measurement. */
export const silentPeer = "https://127.0.0.1:9";

/** Creates the data directory of a node, by default of the authority. `flags` start a node in it. */
export async function makeHome(
  dir: string,
  { key = authority, genesis = genesisOf(authority), peers = [silentPeer] as readonly string[] } = {},
) {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const [genesisFile, peersFile] = [join(dir, "genesis.json"), join(dir, "peers.json")];
  await writeFile(genesisFile, genesis);
  await writeFile(peersFile, JSON.stringify(peers.map((url) => ({ url }))));
  await writeKey(nodeKeyPath(dir), key);
  const flags = ["--data-dir", dir, "--genesis", genesisFile, "--peers", peersFile, "--allow-private-peers"];
  return { dir, flags, url: `sqlite:${join(dir, "gatehouse.sqlite")}` };
}

/** Opens a chain of the authority in a database, and closes it after the work. */
export async function withChain<T>(
  url: string,
  work: (chain: Chain, database: Database) => Promise<T>,
  options?: ChainSettings,
): Promise<T> {
  const database = await openDatabase(url);
  try {
    await migrate(database);
    return await work(await openChain(database, [authority], options), database);
  } finally {
    await database.close();
  }
}

/** Returns the operation of a transaction by the sender's nonce. */
export type OperationOf = (nonce: number) => Operation;

/** Creates a public program with this document. */
export function programOf(nonce: number, json: string): Operation {
  return createPublic(`program ${nonce}`, json);
}

/** Blocks to create. */
interface BlocksToMake {
  readonly count: number;
  /** Number of transactions in each block. */
  readonly transactions: number;
  /** Default: small programs. */
  readonly operationOf?: OperationOf;
  readonly onBlock?: (block: Block) => void;
}

/** Produces blocks, one after the other, with transactions of the authority. */
export async function makeBlocks(chain: Chain, blocks: BlocksToMake): Promise<void> {
  const { count, transactions, operationOf = (n: number) => programOf(n, `{"n":${n}}`), onBlock } = blocks;
  const { genesisHash: network } = chain.head()!;
  let nonce = 0;
  for (let i = 0; i < count; i++) {
    const submitted = Array.from({ length: transactions }, () => {
      nonce++;
      return chain.submit(signTransaction(authority, nonce, operationOf(nonce), { network }));
    });
    await Promise.all(submitted);
    const { block } = await chain.produceBlock(authority);
    onBlock?.(block!.signed);
  }
}
