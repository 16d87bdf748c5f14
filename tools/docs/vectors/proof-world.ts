/** Network of the proof vectors: its state, blocks and signers. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { GetProofRequestSchema, type GetProofResponse } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { AccessMode, AccessPermission, ProgramEncoding } from "../../../gen/gatehouse/storage/v1/storage_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { typeOfJson } from "../../../src/storage/documents/json-text.js";
import { alice, bob, carol } from "./keys.js";
import { createProver, type Prover, signHead, signHeader, type VectorProgram, type VectorState } from "./state.js";

export type Question = MessageInitShape<typeof GetProofRequestSchema>;

/** Request, response, and prior knowledge of the reader. */
export interface ProofCase {
  readonly question: Question;
  readonly answer: GetProofResponse;
  /** Latest block that the reader has seen before. */
  readonly seen?: Pick<VectorBlock, "number" | "hash">;
  /** Time of the response. Default: {@link nowMs}. */
  readonly nowMs?: number;
}

/** Block, and the state after it. */
export interface VectorBlock {
  readonly number: bigint;
  readonly hash: string;
  readonly state: VectorState;
  readonly isPast?: boolean;
  readonly prover: Prover;
  /** Header, signature and statement that the block is the latest. */
  readonly moment: Partial<Pick<GetProofResponse, "header" | "signature" | "head">>;
}

const genesis = `{"name":"proofs","timestamp":1767225600000,"authorities":["${alice.publicKey}","${bob.publicKey}"]}\n`;
/** Key that is not an authority of the network. */
export const network = { genesis, hash: sha256(genesis) };
export const nowMs = 1_767_229_200_000;
export const maxAgeS = 120;

const address = (name: string): string => `stor-${sha256(`address of ${name}`).slice(2, 42)}`;
export const addresses = {
  notes: address("notes"),
  spaced: address("spaced"),
  bare: address("bare"),
  list: address("list"),
  bytes: address("bytes"),
  empty: address("empty"),
  deleted: address("deleted"),
  never: address("never"),
};

/** Texts of the documents. */
export const data = {
  notes:
    '{"title": "Hello", "tags": [1.0, "two"], "": null, "a \\"quoted\\" \\\\ name": 12345678901234567890, ' +
    '"line\\nbreak \\u0001\u007f\u2028":true,"\u{1f3f0} caf\\u00e9":{"n": 1e3}}',
  spaced: ' \n{ "a" : 1 ,\t"b": { "c" : [ ] } \r\n} ',
  bare: "{ }",
  list: "[1, 2.50, null]",
};

const times = { createdMs: 1_767_225_601_000n, updatedMs: 1_767_225_602_000n };
function program(
  programName: string,
  text: string | undefined,
  more: Partial<VectorProgram["record"]> = {},
): VectorProgram {
  const record = {
    ...{ programName, owner: alice.publicKey, mode: AccessMode.PUBLIC, ...times },
    ...{ encoding: ProgramEncoding.JSON, sizeBytes: Buffer.byteLength(text ?? "") },
    ...more,
  };
  return { record, ...(text !== undefined && { data: text }) };
}

const notes: VectorProgram = {
  ...program("notes", data.notes, {
    mode: AccessMode.RESTRICTED,
    allowed: [bob.publicKey],
    blacklisted: [carol.publicKey],
    groups: [{ name: "editors", group: { members: [bob.publicKey], permissions: [AccessPermission.WRITE] } }],
  }),
  metadata: '{"version": "1.0" }',
};

export const spent = sha256("a spent nullifier");
export const unspent = sha256("an unspent nullifier");
export const stranger = `0x${"7".repeat(64)}`;
const transactionHash = sha256("a transaction");
const many = Object.fromEntries(
  Array.from({ length: 20 }, (_, i) => [sha256(`nullifier ${i}`), { blockNumber: BigInt(i % 5), transactionHash }]),
);

const full: VectorState = {
  programs: {
    [addresses.notes]: notes,
    [addresses.spaced]: program("spaced", data.spaced),
    [addresses.bare]: program("bare", data.bare),
    [addresses.list]: program("list", data.list),
    [addresses.bytes]: program("bytes", '"AP+A/g=="', { encoding: ProgramEncoding.BINARY, sizeBytes: 4 }),
    [addresses.empty]: program("empty", undefined),
    [addresses.deleted]: { record: { deleted: true, updatedMs: times.updatedMs } },
  },
  nullifiers: { ...many, [spent]: { blockNumber: 3n, transactionHash } },
  senders: { [alice.publicKey]: 1_767_225_600_123n, [bob.publicKey]: 5n },
  commitments: { root: sha256("a root of the commitment tree"), leafCount: 3 },
};

/** Fields of a header except its number. */
export function headerOf(number: bigint, state: Prover, fields: { timestampMs: bigint; genesisHash?: string }) {
  return {
    number,
    previousHash: sha256(`block ${number - 1n}`),
    transactionsHash: sha256(""),
    genesisHash: network.hash,
    stateRoot: state.root,
    ...fields,
  };
}

/** Creates Bob's statement that a block is the latest. */
export function stateLatest(block: Pick<VectorBlock, "number" | "hash">, timestampMs = BigInt(nowMs - 10_000)) {
  return signHead(bob, { number: block.number, hash: block.hash, timestampMs, genesisHash: network.hash });
}

function block(
  number: bigint,
  state: VectorState,
  { agoMs, hasHead = true, isPast = false }: { agoMs: number; hasHead?: boolean; isPast?: boolean },
): VectorBlock {
  const prover = createProver(state, isPast);
  const { hash, ...signed } = signHeader(alice, headerOf(number, prover, { timestampMs: BigInt(nowMs - agoMs) }));
  const moment = { ...signed, ...(hasHead && { head: stateLatest({ number, hash }) }) };
  return { number, hash, state, isPast, prover, moment };
}

const zero = { number: 0n, hash: network.hash };
export const blocks = {
  /** Block 0, which has no signature. */
  genesis: { ...zero, state: {}, prover: createProver({}), moment: { head: stateLatest(zero) } },
  /** Block with a single item in the state. */
  first: block(1n, { programs: { [addresses.notes]: notes } }, { agoMs: 3_000_000 }),
  /** Older block, which is requested by its number. */
  past: block(5n, full, { agoMs: 2_000_000, hasHead: false, isPast: true }),
  newest: block(7n, full, { agoMs: 1_000_000 }),
  /** Block that is so recent that its header proves its age. */
  withoutHead: block(8n, full, { agoMs: 3_000, hasHead: false }),
} satisfies Readonly<Record<string, VectorBlock>>;

/** Creates the response of an honest node. */
export function answerTo(question: Question, { moment, prover }: VectorBlock = blocks.newest): GetProofResponse {
  return Object.assign(prover.prove(question), moment);
}

/** Returns the expected result of a verifier, from the state itself. */
export function provedOf(question: Question, { number, hash, state, isPast = false }: VectorBlock) {
  const { storageAddress, nullifiers, senders, withCommitments } = create(GetProofRequestSchema, question);
  const { commitments } = state;
  return {
    block: { number: String(number), hash },
    program: storageAddress === undefined ? null : provedProgram(question, state.programs?.[storageAddress], isPast),
    nullifiers: nullifiers.map((nullifierHash) => {
      const use = state.nullifiers?.[nullifierHash];
      return { nullifierHash, use: use ? { ...use, blockNumber: String(use.blockNumber) } : null };
    }),
    senders: senders.map((key) => ({ address: key, nonce: isPast ? null : String(state.senders?.[key] ?? 0n) })),
    commitments: !withCommitments
      ? null
      : commitments === undefined
        ? { kind: "empty" }
        : isPast
          ? { kind: "changed" }
          : { kind: "tree", ...commitments },
  };
}

function provedProgram(question: Question, found: VectorProgram | undefined, isPast: boolean) {
  if (found === undefined || isPast) {
    return { kind: found === undefined ? "absent" : "changed" };
  }
  const { record, data: text, metadata } = found;
  const document = text === undefined ? "none" : typeOfJson(text) === "object" ? "object" : "plain";
  const values = JSON.parse(document === "object" ? text! : "{}") as Readonly<Record<string, unknown>>;
  return {
    kind: "present",
    deleted: record.deleted ?? false,
    owner: record.owner ?? "",
    programName: record.programName ?? "",
    sizeBytes: record.sizeBytes ?? 0,
    document,
    data: (question.withDocument === true ? text : undefined) ?? null,
    metadata: (question.withMetadata === true ? metadata : undefined) ?? null,
    // True if the field exists, by name; its text is in the response.
    fields: document === "object" ? (question.fields ?? []).map((name) => ({ name, exists: name in values })) : [],
  };
}
