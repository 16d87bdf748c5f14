/**
 * The part of the composition root that is about data: a chain over the database, and the programs that its blocks
 * change. A writer applies blocks itself, and so knows when what it keeps in memory is old; a reader keeps nothing.
 */
import { type Chain, createChain, type SealingKey } from "./chain/chain.js";
import { followChain } from "./chain/follower.js";
import type { Genesis } from "./chain/genesis.js";
import { startSealer } from "./chain/sealer.js";
import type { ChainHead, ChainStore } from "./chain/store.js";
import { watchWrites } from "./chain/write-watch.js";
import type { Config } from "./config.js";
import type { Database } from "./db/connect.js";
import { execute } from "./execute.js";
import type { Logger } from "./log.js";
import { StartError } from "./start-error.js";
import { createProgramCache } from "./storage/program-cache.js";
import { createPrograms, type Programs } from "./storage/programs.js";
import { touchedAddress } from "./storage/write.js";

/** How often a reader looks for a new block. */
const followEveryMs = 500;
/** How often a write is tried while the database takes none. */
const retryWriteEveryMs = 1_000;
/** How often a sealing node looks for pending transactions. */
const sealEveryMs = 250;

/** What the chain of a node is made of. */
export interface NodeChainParts {
  readonly role: Config["role"];
  readonly database: Database;
  readonly store: ChainStore;
  readonly genesis: Genesis | undefined;
  /** The newest block; undefined while there is none. */
  readonly head: ChainHead | undefined;
  /** Hears when the database takes no more writes (why), and when it does again (undefined). */
  readonly onWriteTrouble: (trouble: unknown) => void;
  readonly log: Logger;
  readonly onStop: (close: () => unknown) => void;
}

/** A chain and the programs that it changes. */
export interface NodeChain {
  readonly chain: Chain;
  readonly programs: Programs;
}

/**
 * Builds the chain of a node.
 *
 * @throws StartError for a reader whose database holds no chain.
 */
export function createNodeChain(parts: NodeChainParts): NodeChain {
  const programs = createPrograms(parts.database);
  return parts.role === "reader" ? { programs, chain: follow(parts) } : own(parts, programs);
}

function own({ store, genesis, head, onWriteTrouble, onStop }: NodeChainParts, stored: Programs): NodeChain {
  const watched = watchWrites({ store, retryEveryMs: retryWriteEveryMs, onChange: onWriteTrouble });
  onStop(() => watched.stop());
  const programs = createProgramCache(stored);
  const chain = createChain({
    store: watched.store,
    genesis,
    head,
    execute,
    onApplied: ({ transactions }) => {
      for (const { body } of transactions) {
        const address = body.operation.case === "storage" ? touchedAddress(body.operation.value, body) : undefined;
        if (address !== undefined) {
          programs.invalidate(address);
        }
      }
    },
    nowMs: Date.now,
  });
  return { programs, chain };
}

function follow({ store, head, log, onStop }: NodeChainParts): Chain {
  if (head === undefined) {
    throw new StartError("The database holds no chain that can be followed; start the node that writes to it first.");
  }
  const follower = followChain(store, head, followEveryMs, (error) =>
    log.warn({ subsystem: "chain", err: error }, "The newest block cannot be read"),
  );
  onStop(() => follower.stop());
  return follower;
}

/** Makes blocks from now on, if this node alone may: its key is the genesis's single authority. */
export function sealIfAlone({ role, genesis, log, onStop }: NodeChainParts, chain: Chain, key: SealingKey): void {
  const [authority, ...others] = genesis?.authorities ?? [];
  if (role === "writer" && chain.head() !== undefined && authority === key.publicKey && others.length === 0) {
    const sealer = startSealer(chain, key, sealEveryMs, (error) =>
      log.error({ subsystem: "chain", err: error }, "A block could not be made; it is tried again"),
    );
    onStop(() => sealer.stop());
  }
}
