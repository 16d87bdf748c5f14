/** State service over the node's database. */
import type { Chain } from "../../chain/chain.js";
import { createSenderStore } from "../../chain/blocks/sender-store.js";
import type { HeadStatements } from "../../chain/writer/head-statements.js";
import type { ChainStore } from "../../chain/blocks/store.js";
import { decodeHeader } from "../../chain/transactions/transaction.js";
import { fromHex32 } from "../../base/crypto/hash.js";
import type { Database, Queries } from "../../db/queries/database.js";
import { createStateService, type ProvenBlock, type StateReads } from "../../state/service.js";
import { createStateTreeStore } from "../../state/state-tree-store.js";
import { createProgramProofs } from "../../storage/stores/program-proof-store.js";
import { emptyHash } from "../../tree/hashes.js";
import { createNullifierStore } from "../../zk/nullifier-store.js";
import { createTreeStore } from "../../zk/tree-store.js";
import type { NodeCore } from "../lifecycle/core.js";

export interface NodeStateDeps {
  readonly database: Pick<Database, "read">;
  readonly store: Pick<ChainStore, "header">;
  readonly chain: Pick<Chain, "head">;
  readonly heads: Pick<HeadStatements, "latestSignedHead">;
}

/** Creates the service. Its reads are compared with signed data, so they bypass the caches. */
export function createNodeState(
  { corruption }: Pick<NodeCore, "corruption">,
  { database: { read }, store, chain, heads }: NodeStateDeps,
) {
  const reads = createStateReads(read);
  return createStateService({
    ...reads,
    program: (address, requested) =>
      corruption.run(`the proof of the storage program ${address}`, () => reads.program(address, requested)),
    latest() {
      const head = chain.head();
      return head && { ...toProvenBlock(head.number, head), head: heads.latestSignedHead(head.hash) };
    },
    async block(number) {
      // The state before the snapshot that the node started from is not known here.
      const isBefore = number + 1n < (chain.head()?.lowestBlock ?? 1n);
      const found = isBefore ? undefined : await store.header(number);
      return found && toProvenBlock(number, found);
    },
  });
}

/** Creates reads of the state that bypass the caches. */
export function createStateReads(read: Queries): StateReads {
  const senders = createSenderStore(read);
  const nullifiers = createNullifierStore(read);
  const commitments = createTreeStore(read);
  const findProgram = createProgramProofs(read);
  return {
    tree: createStateTreeStore(read),
    program: async (address, requested) => await findProgram(address, requested),
    nullifier: async (hash) => (await nullifiers.find(hash)).use,
    lastNonce: (sender) => senders.lastNonce(sender),
    async commitments() {
      const { root, leafCount } = await commitments.root();
      return leafCount === 0 ? undefined : { root, leafCount };
    },
  };
}

/** Converts a block to the form that proofs under its state root require. */
export function toProvenBlock(
  number: bigint,
  { header, signature }: { readonly header: Uint8Array; readonly signature: Uint8Array },
): ProvenBlock {
  const stateRoot = header.length === 0 ? emptyHash : fromHex32(decodeHeader(header).stateRoot);
  return { number, header, signature, stateRoot };
}
