/** Builds states and their proofs with the tree and keys, without a node. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { runWithoutYielding } from "../../../src/base/async/yielding.js";
import {
  BlockHeaderSchema,
  HeadStatementSchema,
  type SignedHead,
  SignedHeadSchema,
} from "../../../gen/gatehouse/chain/v1/block_pb.js";
import {
  type FieldProof,
  FieldProofSchema,
  type GetProofRequest,
  GetProofRequestSchema,
  type GetProofResponse,
  GetProofResponseSchema,
  type ObjectStateSchema,
  ProgramRecordSchema,
  type ProgramStateSchema,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { blockPrefix, headPrefix } from "../../../src/base/crypto/signing-payloads.js";
import { eachField, type FieldPart } from "../../../src/storage/documents/document-parts.js";
import { typeOfJson } from "../../../src/storage/documents/json-text.js";
import { buildTree } from "../../../src/tree/change.js";
import { stateHashes } from "../../../src/tree/node-hashes.js";
import type { Leaf } from "../../../src/tree/path.js";
import { type Proof, proveAmong } from "../../../src/tree/prove.js";
import { zeroHash } from "../../../src/tree/state-format.js";

/** Program to put into the state. */
export interface VectorProgram {
  readonly record: Omit<MessageInitShape<typeof ProgramRecordSchema>, "$typeName">;
  /** JSON text; for a binary program, the JSON string of its base64. */
  readonly data?: string;
  readonly metadata?: string;
}

/** Content of a state. */
export interface VectorState {
  /** Programs by address. */
  readonly programs?: Readonly<Record<string, VectorProgram>>;
  /** Nullifiers by hash. */
  readonly nullifiers?: Readonly<Record<string, { readonly blockNumber: bigint; readonly transactionHash: string }>>;
  /** Nonces by public key. */
  readonly senders?: Readonly<Record<string, bigint>>;
  readonly commitments?: { readonly root: string; readonly leafCount: number };
}

/** State with its proofs. */
export interface Prover {
  /** Root of the state: 0x and 64 lower-case hex digits. */
  readonly root: string;
  /** Returns the parts of a response except the block. */
  prove(question: MessageInitShape<typeof GetProofRequestSchema>): GetProofResponse;
}

const bytesOf = (hash: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(hash.slice(2), "hex"));
const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString("hex")}`;

type ProgramParts = MessageInitShape<typeof ProgramStateSchema>;
type ObjectParts = MessageInitShape<typeof ObjectStateSchema>;

/**
 * Builds the tree of a state.
 *
 * @param isPast true if only the hashes of past values of programs, nonces and the commitment tree are known.
 */
export function createProver(state: VectorState, isPast = false): Prover {
  const { programs = {}, nullifiers = {}, senders = {}, commitments } = state;
  const leaves: readonly Leaf[] = [
    ...Object.entries(programs).map(([address, program]) =>
      leafOf(stateHashes.programKey(address), hashOf(address, program)),
    ),
    ...Object.entries(nullifiers).map(([hash, { blockNumber, transactionHash }]) =>
      leafOf(stateHashes.nullifierKey(bytesOf(hash)), stateHashes.nullifier(blockNumber, bytesOf(transactionHash))),
    ),
    ...Object.entries(senders).map(([key, nonce]) =>
      leafOf(stateHashes.senderKey(bytesOf(key)), stateHashes.sender(nonce)),
    ),
    ...(commitments === undefined
      ? []
      : [
          leafOf(
            stateHashes.commitmentsKey(),
            stateHashes.commitments(bytesOf(commitments.root), commitments.leafCount),
          ),
        ]),
  ].toSorted((a, b) => Buffer.compare(a.key, b.key));
  const pathOf = (key: Uint8Array) => traveling(proveAmong(leaves, key));
  const past = (key: Uint8Array) => ({ case: "valueHash" as const, value: hashAt(leaves, key) });

  function proveProgram({ storageAddress = "", ...asked }: GetProofRequest) {
    const program = programs[storageAddress];
    const key = stateHashes.programKey(storageAddress);
    const present = program && { case: "program" as const, value: partsOf(storageAddress, program, asked) };
    return { storageAddress, path: pathOf(key), ...(present && { state: isPast ? past(key) : present }) };
  }

  return {
    root: hexOf(runWithoutYielding(buildTree(leaves)).root),
    prove: (question) => {
      const asked = create(GetProofRequestSchema, question);
      return create(GetProofResponseSchema, {
        ...(asked.storageAddress !== undefined && { program: proveProgram(asked) }),
        nullifiers: asked.nullifiers.map((nullifierHash) => ({
          nullifierHash,
          path: pathOf(stateHashes.nullifierKey(bytesOf(nullifierHash))),
          ...nullifiers[nullifierHash],
        })),
        senders: asked.senders.map((address) => {
          const key = stateHashes.senderKey(bytesOf(address));
          const nonce = senders[address];
          const there = nonce !== undefined && { state: isPast ? past(key) : { case: "nonce" as const, value: nonce } };
          return { address, path: pathOf(key), ...there };
        }),
        ...(asked.withCommitments && {
          commitments: {
            path: pathOf(stateHashes.commitmentsKey()),
            ...(commitments && {
              state: isPast ? past(stateHashes.commitmentsKey()) : { case: "tree" as const, value: commitments },
            }),
          },
        }),
      });
    },
  };
}

function leafOf(key: Uint8Array, valueHash: Uint8Array): Leaf {
  return { key, valueHash };
}

function hashAt(leaves: readonly Leaf[], key: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(leaves.find((leaf) => Buffer.compare(leaf.key, key) === 0)!.valueHash);
}

function traveling({ siblings, other }: Proof) {
  return {
    siblings: Uint8Array.from(siblings),
    ...(other && { other: { key: Uint8Array.from(other.key), valueHash: Uint8Array.from(other.valueHash) } }),
  };
}

/** Returns the hashed content of a program, with the requested parts. */
function partsOf(address: string, program: VectorProgram, asked: Partial<GetProofRequest>) {
  const { record, data, metadata } = program;
  const { fields = [], withDocument = false, withMetadata = false } = asked;
  return {
    blinding: bytesOf(sha256(`blinding of ${address}`)),
    record: toBinary(ProgramRecordSchema, create(ProgramRecordSchema, { storageAddress: address, ...record })),
    metadataHash: metadata === undefined ? zeroHash.slice() : Uint8Array.from(stateHashes.text(metadata)),
    ...(withMetadata && { metadata }),
    ...(withDocument && { data }),
    document: documentOf(data, fields),
  } satisfies ProgramParts;
}

function documentOf(data: string | undefined, names: readonly string[]) {
  if (data === undefined) {
    return { case: undefined };
  }
  return typeOfJson(data) === "object"
    ? { case: "object" as const, value: objectOf(data, names) }
    : { case: "textHash" as const, value: Uint8Array.from(stateHashes.plainDocument(data)) };
}

/** Returns the hashed content of an object, with proofs of some fields. */
export function objectOf(data: string, names: readonly string[]) {
  const parts: FieldPart[] = [];
  const fields = eachField(data);
  let next = fields.next();
  for (; next.done !== true; next = fields.next()) {
    parts.push(next.value);
  }
  const keys = parts.map(({ name }) => stateHashes.fieldKey(JSON.stringify(name)));
  const states = parts.map(({ before, value }, i) => ({
    before,
    value,
    previousKey: Uint8Array.from(keys[i - 1] ?? zeroHash),
  }));
  const leaves = states
    .map((field, i) => leafOf(keys[i]!, stateHashes.field(field)))
    .toSorted((a, b) => Buffer.compare(a.key, b.key));
  const prove = (name: string): FieldProof =>
    create(FieldProofSchema, {
      name,
      path: traveling(proveAmong(leaves, stateHashes.fieldKey(JSON.stringify(name)))),
      field: states[parts.findIndex((part) => part.name === name)],
    });
  return {
    fieldsRoot: Uint8Array.from(runWithoutYielding(buildTree(leaves)).root),
    lastKey: Uint8Array.from(keys.at(-1) ?? zeroHash),
    tailHash: Uint8Array.from(stateHashes.text(next.value)),
    fields: names.map(prove),
  } satisfies ObjectParts;
}

function hashOf(address: string, program: VectorProgram): Uint8Array {
  const { document, ...parts } = partsOf(address, program, {});
  return stateHashes.program({
    ...parts,
    documentHash:
      document.case === undefined
        ? zeroHash
        : document.case === "object"
          ? stateHashes.objectDocument(document.value)
          : document.value,
  });
}

/** Signer of a block. */
export interface VectorSigner {
  readonly publicKey: string;
  sign(bytes: Uint8Array): Uint8Array;
}

/** Parts of a response that identify its block. */
export type Moment = Pick<GetProofResponse, "header" | "signature"> & { readonly hash: string };

/** Creates a signed header. */
export function signHeader(
  signer: VectorSigner,
  fields: MessageInitShape<typeof BlockHeaderSchema>,
  prefix = blockPrefix,
): Moment {
  const header = toBinary(BlockHeaderSchema, create(BlockHeaderSchema, { proposer: signer.publicKey, ...fields }));
  return { header, signature: signed(signer, prefix, header), hash: sha256(header) };
}

/** Creates a signed statement that a block is the latest. */
export function signHead(signer: VectorSigner, fields: MessageInitShape<typeof HeadStatementSchema>): SignedHead {
  const content = create(HeadStatementSchema, { proposer: signer.publicKey, ...fields });
  const statement = toBinary(HeadStatementSchema, content);
  return create(SignedHeadSchema, { statement, signature: signed(signer, headPrefix, statement) });
}

function signed(signer: VectorSigner, prefix: string, content: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(signer.sign(Buffer.concat([Buffer.from(prefix, "latin1"), content])));
}
