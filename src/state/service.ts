/** State service: proofs of the state after a block. Each proof is verified before it is sent. */
import type { SignedHead } from "../../gen/gatehouse/chain/v1/block_pb.js";
import type {
  GetProofRequest,
  GetProofResponseSchema,
  ProgramStateSchema,
  StateService,
} from "../../gen/gatehouse/state/v1/state_pb.js";
import { latestBlock } from "../base/latest-block.js";
import { CorruptionError } from "../base/errors/corruption.js";
import { fromHex32 } from "../base/crypto/hash.js";
import { RpcError } from "../rpc/errors.js";
import type { Implementation, Literal } from "../rpc/service.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isSame } from "../tree/hashes.js";
import { stateHashes, treeHashes } from "../tree/node-hashes.js";
import { leadsTo } from "../tree/path.js";
import { type Proof, provePaths } from "../tree/prove.js";
import { provenBlocks, type StateTree } from "./state-tree-store.js";

/** Requested parts of a program. */
type RequestedParts = Pick<GetProofRequest, "fields" | "withDocument" | "withMetadata">;

/** Current content of a program, for its proof. */
export interface ProgramReading {
  /** Throws RpcError PERMISSION_DENIED if the caller may not read the program. */
  checkReadable(identity: string | undefined): void;
  readonly valueHash: Uint8Array;
  readonly state: Literal<MessageInitShape<typeof ProgramStateSchema>>;
}

/** Block whose state is proved. */
export interface ProvenBlock {
  readonly number: bigint;
  /** Encoded header and signature; both empty for block 0. */
  readonly header: Uint8Array;
  readonly signature: Uint8Array;
  /** Root of the state after the block. */
  readonly stateRoot: Uint8Array;
}

export interface StateReads {
  readonly tree: StateTree;
  /** Returns a program; undefined if no program was ever created at this address. */
  readonly program: (address: string, requested: RequestedParts) => Promise<ProgramReading | undefined>;
  readonly nullifier: (
    hash: string,
  ) => Promise<{ readonly blockNumber: bigint; readonly transactionHash: string } | undefined>;
  readonly lastNonce: (sender: string) => Promise<bigint | undefined>;
  /** Returns the commitment tree; undefined if it has no leaves. */
  readonly commitments: () => Promise<{ readonly root: string; readonly leafCount: number } | undefined>;
}

export interface StateServiceDeps extends StateReads {
  /** Returns the latest block with its signed head, if there is one; undefined if there is no block. */
  readonly latest: () => (ProvenBlock & { readonly head: SignedHead | undefined }) | undefined;
  readonly block: (number: bigint) => Promise<ProvenBlock | undefined>;
}

/** Limit on fields, nullifiers and senders in one request, in total. */
const maxNames = 32;
/** Limit on attempts to read values and tree consistently while new blocks are applied. */
const maxAttempts = 20;

type ProofResponse = Literal<MessageInitShape<typeof GetProofResponseSchema>>;

export function createStateService(deps: StateServiceDeps): Implementation<typeof StateService> {
  return {
    async getProof(request, call) {
      const requested = readRequest(request);
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const before = deps.latest();
        const block = await findBlock(deps, request.block);
        const proofs = await findProofs(deps, block, requested, {
          isLatest: () => block.number === deps.latest()?.number,
          mayRead: (program) => program.checkReadable(call.caller.identity),
        });
        if (proofs !== undefined) {
          return { header: block.header, signature: block.signature, head: block.head, ...proofs };
        }
        // No block was applied since the last attempt, so the stored state contradicts the signed root.
        if (deps.latest()?.number === before?.number && attempt > 1) {
          throw new CorruptionError("The state does not lead to the root in the header of its block.");
        }
      }
      throw new RpcError("OVERLOADED", "New blocks arrive faster than the state can be proven; try again in 1 s.", 1);
    },
  };
}

/** Validated request. */
export interface RequestedItems extends RequestedParts {
  readonly address: string | undefined;
  readonly nullifiers: readonly string[];
  readonly senders: readonly string[];
  readonly withCommitments: boolean;
}

function readRequest(request: GetProofRequest): RequestedItems {
  const { storageAddress: address, fields, withDocument, withMetadata, nullifiers, senders, withCommitments } = request;
  if (fields.length + nullifiers.length + senders.length > maxNames) {
    throw new RpcError(
      "INVALID_REQUEST",
      `A request may have at most ${maxNames} fields, nullifiers and senders in total.`,
    );
  }
  for (const names of [fields, nullifiers, senders]) {
    if (new Set(names).size < names.length) {
      throw new RpcError("INVALID_REQUEST", "The request has the same name twice.");
    }
  }
  if (address === undefined && (fields.length > 0 || withDocument || withMetadata)) {
    throw new RpcError("INVALID_REQUEST", "Fields, document and metadata require a storageAddress, which is missing.");
  }
  return { address, fields, withDocument, withMetadata, nullifiers, senders, withCommitments };
}

async function findBlock(
  deps: StateServiceDeps,
  number: bigint | undefined,
): Promise<ProvenBlock & Partial<Pick<ProofResponse, "head">>> {
  const latest = deps.latest();
  if (latest === undefined) {
    throw new RpcError("STATE_NOT_READY", "The node has no chain yet.");
  }
  if (number === undefined || number === latestBlock || number === latest.number) {
    return latest;
  }
  const isProven = number < latest.number && number > latest.number - BigInt(provenBlocks);
  const block = isProven ? await deps.block(number) : undefined;
  if (block === undefined) {
    throw new RpcError(
      "NOT_FOUND",
      `The state is proven after each of the last ${provenBlocks} blocks, up to ${latest.number}; block ${number} is not one of them.`,
    );
  }
  return block;
}

/** Item to prove: its key, its current value and its place in the response. */
interface Item {
  readonly key: Uint8Array;
  readonly valueHash: Uint8Array | undefined;
  readonly addTo: (response: MutableResponse, path: Path, state: ProvenValue) => void;
}

/** Proven value in the response: the current value, the hash of an older value, or none. */
type ProvenValue =
  | { readonly case: "now" }
  | { readonly case: "valueHash"; readonly value: Uint8Array }
  | { readonly case: undefined };

type Path = Pick<Proof, "siblings" | "other">;

type MutableResponse = { -readonly [name in "program" | "commitments"]?: ProofResponse[name] } & {
  readonly nullifiers: NonNullable<ProofResponse["nullifiers"]>[number][];
  readonly senders: NonNullable<ProofResponse["senders"]>[number][];
};

/**
 * Returns the proofs. Returns undefined if the values do not match the tree, usually because a block was applied
 * between the reads.
 *
 * @param rules.isLatest returns true if the block is still the latest one, so that no value is newer. Called after the
 *   values were read.
 * @param rules.mayRead throws if the caller may not read the program.
 */
export async function findProofs(
  reads: StateReads,
  block: Pick<ProvenBlock, "number" | "stateRoot">,
  requested: RequestedItems,
  rules: { readonly isLatest: () => boolean; readonly mayRead: (program: ProgramReading) => void },
): Promise<MutableResponse | undefined> {
  const { isLatest, mayRead } = rules;
  const items = await Promise.all(itemsOf(reads, requested, mayRead));
  const proofs = await provePaths(
    reads.tree.pagesAfter(block.number),
    items.map(({ key }) => key),
  );
  const response: MutableResponse = { nullifiers: [], senders: [] };
  const mayHaveChanged = !isLatest();
  for (const [i, item] of items.entries()) {
    const proof = proofs[i]!;
    const proven = compare(item.valueHash, proof.valueHash, mayHaveChanged);
    if (proven === undefined || !leadsTo(block.stateRoot, treeHashes, item.key, proof.valueHash, proof)) {
      return undefined;
    }
    item.addTo(response, { siblings: proof.siblings, other: proof.other }, proven);
  }
  return response;
}

/**
 * Compares the hash of the current value with the proven one, and returns the value for the response. Returns undefined
 * if they contradict each other.
 */
function compare(
  current: Uint8Array | undefined,
  proven: Uint8Array | undefined,
  mayHaveChanged: boolean,
): ProvenValue | undefined {
  if (current === undefined ? proven === undefined : proven !== undefined && isSame(current, proven)) {
    return proven === undefined ? { case: undefined } : { case: "now" };
  }
  if (!mayHaveChanged) {
    return undefined;
  }
  return proven === undefined ? { case: undefined } : { case: "valueHash", value: proven };
}

function itemsOf(
  reads: StateReads,
  requested: RequestedItems,
  mayRead: (program: ProgramReading) => void,
): Promise<Item>[] {
  const { address, nullifiers, senders, withCommitments } = requested;
  return [
    ...(address === undefined ? [] : [programItem(reads, address, requested, mayRead)]),
    ...nullifiers.map((hash) => nullifierItem(reads, hash)),
    ...senders.map((sender) => senderItem(reads, sender)),
    ...(withCommitments ? [commitmentsItem(reads)] : []),
  ];
}

async function programItem(
  { program }: StateReads,
  storageAddress: string,
  requested: RequestedParts,
  mayRead: (program: ProgramReading) => void,
): Promise<Item> {
  const found = await program(storageAddress, requested);
  if (found !== undefined) {
    mayRead(found);
  }
  return {
    key: stateHashes.programKey(storageAddress),
    valueHash: found?.valueHash,
    addTo(response, path, proven) {
      const state = proven.case === "now" ? { case: "program" as const, value: found!.state } : proven;
      response.program = { storageAddress, path, state };
    },
  };
}

async function nullifierItem({ nullifier }: StateReads, nullifierHash: string): Promise<Item> {
  const use = await nullifier(nullifierHash);
  return {
    key: stateHashes.nullifierKey(fromHex32(nullifierHash)),
    valueHash: use && stateHashes.nullifier(use.blockNumber, fromHex32(use.transactionHash)),
    addTo: (response, path, proven) =>
      void response.nullifiers.push({ nullifierHash, path, ...(proven.case === "now" ? use : {}) }),
  };
}

async function senderItem({ lastNonce }: StateReads, address: string): Promise<Item> {
  const nonce = await lastNonce(address);
  return {
    key: stateHashes.senderKey(fromHex32(address)),
    valueHash: nonce === undefined ? undefined : stateHashes.sender(nonce),
    addTo(response, path, proven) {
      const state = proven.case === "now" ? { case: "nonce" as const, value: nonce! } : proven;
      response.senders.push({ address, path, state });
    },
  };
}

async function commitmentsItem({ commitments }: StateReads): Promise<Item> {
  const tree = await commitments();
  return {
    key: stateHashes.commitmentsKey(),
    valueHash: tree && stateHashes.commitments(fromHex32(tree.root), tree.leafCount),
    addTo(response, path, proven) {
      const state = proven.case === "now" ? { case: "tree" as const, value: tree! } : proven;
      response.commitments = { path, state };
    },
  };
}
