/** Generates examples/vectors/proofs.json: proofs of the state in the form of a node's responses, and invalid ones. */
import { create, toJson } from "@bufbuild/protobuf";
import { GetProofRequestSchema, GetProofResponseSchema } from "../../../gen/gatehouse/state/v1/state_pb.js";
import { latestBlock } from "../../../src/base/latest-block.js";
import { jsonEncoder } from "../../../src/rpc/codec/json-encoder.js";
import { stateHashes } from "../../../src/tree/node-hashes.js";
import { alice } from "./keys.js";
import { lies } from "./proof-lies.js";
import {
  addresses,
  answerTo,
  blocks,
  data,
  maxAgeS,
  network,
  nowMs,
  type ProofCase,
  provedOf,
  type Question,
  spent,
  stranger,
  unspent,
  type VectorBlock,
} from "./proof-world.js";
import { objectOf } from "./state.js";

/** Valid response, and the values that it proves. */
interface RightCase extends ProofCase {
  readonly proved: object;
}

const of = (question: Question, block: VectorBlock = blocks.newest): RightCase => ({
  question,
  answer: answerTo(question, block),
  proved: provedOf(question, block),
});

const right: Readonly<Record<string, RightCase>> = {
  "a field": of({ storageAddress: addresses.notes, fields: ["title"] }),
  "a field that is not there": of({ storageAddress: addresses.notes, fields: ["subtitle"] }),
  "fields whose names have to be escaped, and the one without a name": of({
    storageAddress: addresses.notes,
    fields: ["", 'a "quoted" \\ name', "line\nbreak \u0001\u007f\u2028", "\u{1f3f0} caf\u00e9"],
  }),
  "a whole document and its metadata": of({ storageAddress: addresses.notes, withDocument: true, withMetadata: true }),
  "a document with space around it, and one of its fields": of({
    storageAddress: addresses.spaced,
    fields: ["b"],
    withDocument: true,
  }),
  "an object without fields": of({ storageAddress: addresses.bare, fields: ["a"], withDocument: true }),
  "a document that is no object": of({ storageAddress: addresses.list, withDocument: true }),
  bytes: of({ storageAddress: addresses.bytes, withDocument: true, withMetadata: true }),
  "a program that holds nothing": of({ storageAddress: addresses.empty, withDocument: true, fields: ["a"] }),
  "a program alone, without what it holds": of({ storageAddress: addresses.notes }),
  "a program that was deleted": of({ storageAddress: addresses.deleted, withDocument: true }),
  "an address where there never was a program": of({ storageAddress: addresses.never }),
  "a nullifier that is spent, and one that is not": of({ nullifiers: [spent, unspent] }),
  "the nonce of a sender, and of one who has sent nothing": of({ senders: [alice.publicKey, stranger] }),
  "the commitment tree": of({ withCommitments: true }),
  "everything at once": of({
    storageAddress: addresses.notes,
    fields: ["tags", "subtitle"],
    withDocument: true,
    withMetadata: true,
    nullifiers: [unspent],
    senders: [alice.publicKey],
    withCommitments: true,
  }),
  "the newest block, and nothing else": of({}),
  "the newest block, asked for by the number that stands for it": of({ block: latestBlock, withCommitments: true }),
  "a block that was made just now, of which nobody said that it is the newest": of(
    { nullifiers: [spent] },
    blocks.withoutHead,
  ),
  "a state with one leaf, which is the root": of({ storageAddress: addresses.notes, fields: ["title"] }, blocks.first),
  "the state after block 0, in which there is nothing": of(
    { storageAddress: addresses.notes, withCommitments: true },
    blocks.genesis,
  ),
  "the newest block again": { ...of({}), seen: blocks.newest },
  "a block that is asked for, older than one seen before; what changed since is a hash": {
    ...of(
      {
        storageAddress: addresses.notes,
        senders: [alice.publicKey],
        withCommitments: true,
        nullifiers: [spent],
        block: blocks.past.number,
      },
      blocks.past,
    ),
    seen: blocks.newest,
  },
};

const encode = jsonEncoder(GetProofResponseSchema);

export function proofVectors(): string {
  return JSON.stringify({
    genesis: network.genesis,
    network: network.hash,
    nowMs: String(nowMs),
    maxAgeS,
    keys: keyVectors(),
    documents: Object.entries(data).map(([name, text]) => documentVector(name, text)),
    proofs: Object.entries(right).map(([name, one]) => ({ name, ...vector(one), proved: one.proved })),
    refused: Object.entries(lies()).map(([name, { why, flaw, ...one }]) => ({ name, why, flaw, ...vector(one) })),
  });
}

function vector({ question, answer, seen, nowMs: time }: ProofCase) {
  return {
    question: toJson(GetProofRequestSchema, create(GetProofRequestSchema, question)),
    ...(seen && { seen: { number: String(seen.number), hash: seen.hash } }),
    ...(time !== undefined && { nowMs: String(time) }),
    answer: JSON.parse(encode(answer)) as object,
  };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function keyVectors() {
  return [
    { kind: "program", of: addresses.notes, key: hex(stateHashes.programKey(addresses.notes)) },
    { kind: "nullifier", of: spent, key: hex(stateHashes.nullifierKey(Buffer.from(spent.slice(2), "hex"))) },
    {
      kind: "sender",
      of: alice.publicKey,
      key: hex(stateHashes.senderKey(Buffer.from(alice.publicKey.slice(2), "hex"))),
    },
    { kind: "commitments", of: "", key: hex(stateHashes.commitmentsKey()) },
    ...["title", "", '"\\', "\n\u0001\u007f\u2028", "\ud800", "\u{1f3f0}"].map((name) => ({
      kind: "field",
      of: name,
      key: hex(stateHashes.fieldKey(JSON.stringify(name))),
    })),
  ];
}

function documentVector(name: string, text: string) {
  if (text.startsWith("[")) {
    return { name, text, hash: hex(stateHashes.plainDocument(text)) };
  }
  const { fieldsRoot, lastKey, tailHash } = objectOf(text, []);
  const hash = stateHashes.objectDocument({ fieldsRoot, lastKey, tailHash });
  return { name, text, fieldsRoot: hex(fieldsRoot), lastKey: hex(lastKey), tailHash: hex(tailHash), hash: hex(hash) };
}
