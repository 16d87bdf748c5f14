/**
 * Verified reads of nullifiers and of the commitment tree: the proof that each needs, and the response built from it.
 */
import type { MerkleProof } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { ZkService } from "../../../gen/gatehouse/zk/v1/zk_pb.js";
import { toHash } from "../../../src/base/crypto/parse-hash.js";
import { latestBlock } from "../../../src/base/latest-block.js";
import { hex32 } from "../../../src/base/crypto/signing-payloads.js";
import { isSame } from "../../../src/tree/hashes.js";
import { requestHeader } from "./blocks.js";
import type { ProvedBlock } from "./moment.js";
import type { ProvedState } from "./check.js";
import { bytesOf, stateHashes } from "./hashing.js";
import { ProofError } from "./proof-error.js";
import { provedRead } from "./proved-read.js";
import { type HashPair, type ProofSource, readExisting, unprovable, wrongForm } from "./source.js";

/** Root of the commitment tree without leaves: depth 20, with zero for each leaf. */
export const emptyCommitmentRoot = "0x2134e76ac5d21aab186c2be1dd8f84ee880a1e46eaf712f9d371b6df22191f3e";
const treeDepth = 20;
/** Order of BN254's scalar field. Larger numbers hash as their remainder, so a hash says nothing about them. */
const fieldOrder = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;

/** Root of the commitment tree. */
interface Root {
  readonly rootHash: string;
  readonly leafCount: number;
}

const emptyRoot: Root = { rootHash: emptyCommitmentRoot, leafCount: 0 };

const { method } = ZkService;

export const zkReads = [
  provedRead(method.getNullifier, async (request, { prove }) => {
    const requestedHash = requireHash("nullifier_hash", request.nullifierHash);
    const { nullifiers } = await prove({ nullifiers: [requestedHash] });
    const { nullifierHash, use } = nullifiers[0]!;
    return { used: use !== undefined, nullifierHash, ...use };
  }),

  provedRead(method.getMerkleRoot, async (request, source) => {
    const block = request.block === latestBlock ? undefined : request.block;
    if (block === 0n) {
      // The state after the genesis is empty, by definition.
      return { ...emptyRoot, blockNumber: 0n };
    }
    const read = () => source.prove({ withCommitments: true, block });
    const state = await (block === undefined ? read() : readExisting(block, source, read));
    const root = await rootOf(state, source);
    return { ...root, blockNumber: await creatingBlock(root, state.block, source) };
  }),

  provedRead(method.getMerkleProof, async (request, source) => {
    const commitment = requireHash("commitment", request.commitment);
    const requested = request.root === undefined ? undefined : requireHash("root", request.root);
    const { hashPair } = source;
    if (hashPair === undefined) {
      throw unprovable("A path in the commitment tree, without the option verify.hashPair,");
    }
    const state = await source.prove({ withCommitments: true });
    const { rootHash, leafCount } = await rootOf(state, source);
    const root = requested ?? rootHash;
    const { proof, blockNumber } = await source.ask(method.getMerkleProof, { commitment, root });
    if (proof?.leaf !== commitment || proof.root !== root || rootOfProof(proof, hashPair) !== root) {
      throw new ProofError("path", "The path of the commitment does not lead to its root.");
    }
    // The empty leaf is 0, which is no commitment.
    if (BigInt(commitment) === 0n || (root === rootHash && proof.leafIndex >= leafCount)) {
      throw new ProofError("path", "The position of the commitment is outside the tree.");
    }
    // The header of the block that created an older root proves it.
    await checkCreator(root, blockNumber, state.block, source);
    const { siblings, pathIndices, leaf, leafIndex } = proof;
    const checked = { siblings: siblings.map(({ hashes }) => ({ hashes })), pathIndices, root, leaf, leafIndex };
    return { commitment, proof: checked, blockNumber };
  }),
];

function requireHash(name: string, text: string): string {
  const hash = toHash(text);
  if (hash === undefined) {
    throw wrongForm(name, "0x and 64 hex digits", text);
  }
  return hash;
}

/** Returns the root after a block. If only its hash is proven, requests the root from the node and checks the hash. */
async function rootOf({ block, commitments }: ProvedState, { ask }: ProofSource): Promise<Root> {
  switch (commitments?.kind) {
    case "tree":
      return { rootHash: commitments.root, leafCount: commitments.leafCount };
    case "changed": {
      const { rootHash, leafCount } = await ask(method.getMerkleRoot, { block: block.number });
      const isRight =
        hex32.test(rootHash) && isSame(stateHashes.commitments(bytesOf(rootHash), leafCount), commitments.valueHash);
      if (!isRight) {
        throw new ProofError("value", "The root of the commitment tree does not match its proven hash.");
      }
      return { rootHash, leafCount };
    }
    default:
      return emptyRoot;
  }
}

/** Returns the block that created a root. Only the header of that block names it, because the tree only grows. */
async function creatingBlock({ rootHash, leafCount }: Root, proved: ProvedBlock, source: ProofSource): Promise<bigint> {
  if (leafCount === 0) {
    return 0n;
  }
  if (proved.commitmentRoot === rootHash) {
    return proved.number;
  }
  // The node names the block, and the header of that block proves it.
  const { blockNumber } = await source.ask(method.getMerkleRoot, { block: proved.number });
  await checkCreator(rootHash, blockNumber, proved, source);
  return blockNumber;
}

async function checkCreator(
  root: string,
  blockNumber: bigint,
  proved: ProvedBlock,
  source: ProofSource,
): Promise<void> {
  const fields = blockNumber === proved.number ? proved : (await requestHeader(blockNumber, source)).fields;
  if (fields.commitmentRoot !== root || blockNumber > proved.number) {
    throw new ProofError("value", `The header of block ${blockNumber} does not have this commitment root.`);
  }
}

/** Returns the root that the path leads to; undefined if the path is not valid for this tree. */
function rootOfProof(proof: MerkleProof, hashPair: HashPair): string | undefined {
  const { siblings, pathIndices, leaf, leafIndex } = proof;
  const hasLength = siblings.length === treeDepth && pathIndices.length === treeDepth;
  if (!hasLength || leafIndex >= 2 ** treeDepth || !isElement(leaf)) {
    return undefined;
  }
  let node = BigInt(leaf);
  for (let level = 0; level < treeDepth; level++) {
    const [beside, ...others] = siblings[level]!.hashes;
    const bit = pathIndices[level];
    if (beside === undefined || others.length > 0 || !isElement(beside) || bit !== ((leafIndex >>> level) & 1)) {
      return undefined;
    }
    node = bit === 0 ? hashPair(node, BigInt(beside)) : hashPair(BigInt(beside), node);
  }
  return `0x${node.toString(16).padStart(64, "0")}`;
}

function isElement(hash: string): boolean {
  return hex32.test(hash) && BigInt(hash) < fieldOrder;
}
