/** Invalid responses: each differs from a valid one in one respect. */
import { clone } from "@bufbuild/protobuf";
import type { ProofFlaw } from "../../../client/src/proof/proof-error.js";
import {
  type GetProofResponse,
  GetProofResponseSchema,
  type ObjectState,
  type Path,
  type ProgramProof,
  type ProgramState,
} from "../../../gen/gatehouse/state/v1/state_pb.js";
import { transactionPrefix } from "../../../src/base/crypto/signing-payloads.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { stateHashes } from "../../../src/tree/node-hashes.js";
import { alice, bob, carol } from "./keys.js";
import { otherNetwork } from "./network.js";
import {
  addresses,
  answerTo,
  blocks,
  data,
  headerOf,
  maxAgeS,
  network,
  nowMs,
  type ProofCase,
  type Question,
  stateLatest,
  spent,
  stranger,
  unspent,
} from "./proof-world.js";
import { signHead, signHeader } from "./state.js";

/** Invalid response, and the first flaw that a verifier finds. */
export interface Lie extends ProofCase {
  readonly why: string;
  readonly flaw: ProofFlaw;
}

/** Creates a valid response with one change. */
function lie(flaw: ProofFlaw, why: string, question: Question, change?: (answer: GetProofResponse) => void): Lie {
  const answer = clone(GetProofResponseSchema, answerTo(question));
  change?.(answer);
  return { flaw, why, question, answer };
}

const title: Question = { storageAddress: addresses.notes, fields: ["title"] };
const absent: Question = { storageAddress: addresses.notes, fields: ["subtitle"] };
const tags: Question = { ...title, fields: ["tags"] };
const both: Question = { ...title, fields: ["title", "tags"] };
const ofAlice: Question = { senders: [alice.publicKey] };
const ofSpent: Question = { nullifiers: [spent] };
const ofUnspent: Question = { nullifiers: [unspent] };
const ofTree: Question = { withCommitments: true };
const ofBytes: Question = { storageAddress: addresses.bytes, withDocument: true };
const whole: Question = { storageAddress: addresses.notes, withDocument: true, withMetadata: true };

const stateOf = ({ program }: GetProofResponse): ProgramState => program!.state.value as ProgramState;
const objectOf = (answer: GetProofResponse): ObjectState => stateOf(answer).document.value as ObjectState;
const cut = (path: Path | undefined, bytes: number): void => {
  path!.siblings = path!.siblings.subarray(0, path!.siblings.length - bytes);
};
const own = (of: GetProofResponse["program"]): Pick<ProgramProof, "path" | "state"> => ({
  path: of!.path,
  state: of!.state,
});
const joined = (...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.concat(parts));

const values = (): Readonly<Record<string, Lie>> => ({
  "the value of a field is another": lie("path", "Its hash is another, too.", title, (answer) => {
    objectOf(answer).fields[0]!.field!.value = '"Goodbye"';
  }),
  "the value of a field is written otherwise": lie(
    "path",
    "Values are what was written, letter by letter.",
    tags,
    (answer) => {
      objectOf(answer).fields[0]!.field!.value = '[1, "two"]';
    },
  ),
  "the values of two fields are swapped": lie("path", "A value is that of one key.", both, (answer) => {
    const [one, other] = objectOf(answer).fields;
    [one!.field, other!.field] = [other!.field, one!.field];
  }),
  "the fields come in another order": lie("missing", "Each stands where it was asked for.", both, (answer) => {
    objectOf(answer).fields.reverse();
  }),
  "another field is proved": lie("missing", "That one was not asked for.", title, (answer) => {
    objectOf(answer).fields = objectOf(answerTo(tags)).fields;
  }),
  "the document has another number of its fields proved": lie("missing", "Both were asked for.", both, (answer) => {
    objectOf(answer).fields.pop();
  }),
  "the document has other space": lie("value", "It is not the text that was hashed.", whole, (answer) => {
    stateOf(answer).data = JSON.stringify(JSON.parse(data.notes));
  }),
  "the document has a member twice": lie("value", "No document has.", whole, (answer) => {
    stateOf(answer).data = '{"title": "Hello", "title": "Hello"}';
  }),
  "the document is no JSON": lie("value", "No document is.", whole, (answer) => {
    stateOf(answer).data = '{"title": "Hello"';
  }),
  "bytes are others": lie("value", "Their hash is another, too.", ofBytes, (answer) => {
    stateOf(answer).data = '"AP+A/w=="';
  }),
  "the metadata are others": lie("value", "Their hash is another, too.", whole, (answer) => {
    stateOf(answer).metadata = '{"version": "2.0" }';
  }),
  "the document is left out": lie("missing", "It was asked for, and there is one.", whole, (answer) => {
    stateOf(answer).data = undefined;
  }),
  "the metadata are left out": lie("missing", "They were asked for, and there are some.", whole, (answer) => {
    stateOf(answer).metadata = undefined;
  }),
  "the record says another owner": lie("path", "The record is hashed as a whole.", title, (answer) => {
    const state = stateOf(answer);
    const at = Buffer.from(state.record).indexOf(alice.publicKey);
    state.record = joined(state.record.subarray(0, at), Buffer.from(bob.publicKey), state.record.subarray(at + 66));
  }),
  "a nonce is another": lie("path", "Its hash is another, too.", { senders: [bob.publicKey] }, (answer) => {
    answer.senders[0]!.state = { case: "nonce", value: 6n };
  }),
  "the commitment tree has another number of leaves": lie(
    "path",
    "The number is hashed with the root.",
    ofTree,
    (answer) => {
      (answer.commitments!.state.value as { leafCount: number }).leafCount = 4;
    },
  ),
  "a nullifier was spent in another block": lie("path", "The number is hashed.", ofSpent, (answer) => {
    answer.nullifiers[0]!.blockNumber = 4n;
  }),
  "the hash of the spending transaction is in upper case": lie(
    "malformed",
    "Hashes have one form.",
    ofSpent,
    (answer) => {
      const proof = answer.nullifiers[0]!;
      proof.transactionHash = `0x${proof.transactionHash!.slice(2).toUpperCase()}`;
    },
  ),
});

const absences = (): Readonly<Record<string, Lie>> => ({
  "a field that is there is not": lie("path", "The way to it ends at its leaf.", title, (answer) => {
    objectOf(answer).fields[0]!.field = undefined;
  }),
  "a field is not there, by its own leaf": lie(
    "path",
    "Only the leaf of another key stands for absence.",
    title,
    (answer) => {
      const { path, field } = objectOf(answer).fields[0]!;
      const leaf = { key: stateHashes.fieldKey('"title"'), valueHash: stateHashes.field(field!) };
      Object.assign(path!, { other: { key: Uint8Array.from(leaf.key), valueHash: Uint8Array.from(leaf.valueHash) } });
      objectOf(answer).fields[0]!.field = undefined;
    },
  ),
  "a field that is not there is": lie("path", "No such leaf is under the root.", absent, (answer) => {
    objectOf(answer).fields[0]!.field = objectOf(answerTo(title)).fields[0]!.field;
  }),
  "a program that is there is not": lie("path", "The way to it ends at its leaf.", title, (answer) => {
    answer.program!.state = { case: undefined };
  }),
  "a spent nullifier is unspent": lie("path", "The way to it ends at its leaf.", ofSpent, (answer) => {
    Object.assign(answer.nullifiers[0]!, { blockNumber: undefined, transactionHash: undefined });
  }),
  "an unspent nullifier is spent": lie("path", "No such leaf is under the root.", ofUnspent, (answer) => {
    Object.assign(answer.nullifiers[0]!, { blockNumber: 3n, transactionHash: sha256("a transaction") });
  }),
  "a sender has sent nothing": lie("path", "The way to it ends at its leaf.", ofAlice, (answer) => {
    answer.senders[0]!.state = { case: undefined };
  }),
  "one nullifier is passed over": lie("missing", "Both were asked for.", { nullifiers: [spent, unspent] }, (answer) => {
    answer.nullifiers.pop();
  }),
});

const places = (): Readonly<Record<string, Lie>> => ({
  "the right proof of another program": lie("missing", "That one was not asked for.", title, (answer) => {
    answer.program = answerTo({ storageAddress: addresses.spaced, fields: ["title"] }).program;
  }),
  "the right proof of another program, under the address that was asked for": lie(
    "path",
    "The key is made of the address.",
    title,
    (answer) => {
      Object.assign(answer.program!, own(answerTo({ storageAddress: addresses.spaced, fields: ["title"] }).program));
    },
  ),
  "the right proof of another nullifier": lie("missing", "That one was not asked for.", ofUnspent, (answer) => {
    answer.nullifiers = answerTo({ nullifiers: [sha256("any other")] }).nullifiers;
  }),
  "the right proof of another sender, under the key that was asked for": lie(
    "path",
    "The tree's key is made of the sender's.",
    ofAlice,
    (answer) => {
      answer.senders[0]!.path = answerTo({ senders: [stranger] }).senders[0]!.path;
    },
  ),
  "no program at all": lie("missing", "One was asked for.", title, (answer) => {
    answer.program = undefined;
  }),
  "a path is cut": lie("path", "Without its last node it leads elsewhere.", title, (answer) =>
    cut(answer.program!.path, 32),
  ),
  "a path of a field is cut": lie("path", "Without its last node it leads elsewhere.", title, (answer) =>
    cut(objectOf(answer).fields[0]!.path, 32),
  ),
  "a path is cut within a hash": lie("path", "Hashes have 32 bytes.", title, (answer) => cut(answer.program!.path, 1)),
  "there is no path": lie("path", "The root is no program.", title, (answer) => {
    answer.program!.path = undefined;
  }),
  "only a hash of the program comes": lie("missing", "After the newest block everything is kept.", title, (answer) => {
    answer.program = answerTo({ ...title, block: 5n }, blocks.past).program;
  }),
  "parts of a program are moved into the next one": lie("malformed", "Each of them has 32 bytes.", whole, (answer) => {
    const state = stateOf(answer);
    const record = Buffer.from(sha256(state.record).slice(2), "hex");
    state.blinding = joined(state.blinding, record);
    state.record = Uint8Array.from(Buffer.from(state.metadata!));
  }),
  "the key of the field before has taken a part of the value": lie(
    "malformed",
    "Joined they are the same bytes; a key has 32.",
    { ...title, fields: ['a "quoted" \\ name'] },
    (answer) => {
      const { field } = objectOf(answer).fields[0]!;
      field!.previousKey = joined(field!.previousKey, Buffer.from(field!.value.slice(0, 5)));
      field!.value = field!.value.slice(5);
    },
  ),
});

/** Responses with another header, or none. */
function signedBy(
  flaw: ProofFlaw,
  why: string,
  {
    by = alice,
    as = by,
    prefix,
    ...fields
  }: {
    readonly by?: typeof alice;
    readonly as?: typeof alice;
    readonly prefix?: string;
    readonly genesisHash?: string;
    readonly stateRoot?: string;
  },
): Lie {
  const { number, prover } = blocks.withoutHead;
  return lie(flaw, why, title, (answer) => {
    const header = headerOf(number, prover, { timestampMs: BigInt(nowMs - 3_000), ...fields });
    const { hash: _, ...moment } = signHeader(by, { ...header, proposer: as.publicKey }, prefix);
    Object.assign(answer, { ...moment, head: undefined });
  });
}

const headers = (): Readonly<Record<string, Lie>> => ({
  "another key signs": signedBy("signature", "Carol is no authority.", { by: carol }),
  "another key signs in the name of an authority": signedBy("signature", "It is not the signature of who is named.", {
    by: carol,
    as: alice,
  }),
  "one authority signs in the name of another": signedBy("signature", "It is not the signature of who is named.", {
    by: bob,
    as: alice,
  }),
  "it is signed as a transaction": signedBy("signature", "The words before the header say what is signed.", {
    prefix: transactionPrefix,
  }),
  "of another network": signedBy("network", "Its authority is the same, its genesis is not.", {
    genesisHash: otherNetwork,
  }),
  "the header has no root of the state": signedBy("malformed", "Every header has one.", { stateRoot: "" }),
  "a forged header": lie("signature", "The signature is that of another header.", title, (answer) => {
    const forged = signHeader(carol, {
      ...headerOf(7n, blocks.first.prover, { timestampMs: BigInt(nowMs) }),
      proposer: alice.publicKey,
    });
    answer.header = forged.header;
  }),
  "a bit of the header is another": lie("signature", "The signature is that of another header.", title, (answer) => {
    answer.header = Uint8Array.from(answer.header);
    answer.header[answer.header.length - 1]! ^= 1;
  }),
  "the signature is cut": lie("signature", "It has 64 bytes.", title, (answer) => {
    answer.signature = answer.signature.subarray(0, 63);
  }),
  "the header is cut": lie("malformed", "It cannot be read.", title, (answer) => {
    answer.header = answer.header.subarray(0, -1);
  }),
  "a header of another block, with the paths of this one": lie("path", "Its root is another.", title, (answer) => {
    const { moment } = blocks.first;
    Object.assign(answer, moment);
  }),
});

/** Responses with another statement that the block is the latest. */
function saying(flaw: ProofFlaw, why: string, head: GetProofResponse["head"], more: Partial<ProofCase> = {}): Lie {
  return { ...lie(flaw, why, title, (answer) => (answer.head = head)), ...more };
}

const ages = (): Readonly<Record<string, Lie>> => {
  const { number, hash } = blocks.newest;
  const nowSaid = { number, hash, genesisHash: network.hash, timestampMs: BigInt(nowMs - 10_000) };
  return {
    "an old head": {
      ...lie("age", "Nobody has said for too long that it is the newest.", title),
      nowMs: nowMs + maxAgeS * 1000,
    },
    "an old head, which nobody ever said to be the newest": saying(
      "age",
      "Its own time is all there is to go by.",
      undefined,
    ),
    "a head from the future": saying(
      "age",
      "One of the two clocks is wrong.",
      stateLatest(blocks.newest, BigInt(nowMs + 1000 + maxAgeS * 1000)),
    ),
    "a block before one that was seen": {
      ...lie("rollback", "What was added since is left out.", title),
      seen: blocks.withoutHead,
    },
    "another block of the number that was seen": {
      ...lie("fork", "Authorities have signed two blocks of one number.", title),
      seen: { number, hash: sha256("another block 7") },
    },
    "block 0, where another was seen": {
      ...lie("rollback", "What was added since is left out.", title),
      answer: answerTo(title, blocks.genesis),
      seen: blocks.first,
    },
    "block 0, of which nobody says that it is the newest": {
      ...lie("age", "It is signed by nobody.", title),
      answer: { ...answerTo(title, blocks.genesis), head: undefined },
    },
    "another block than the one that was asked for": lie("missing", "Block 5 was.", { ...title, block: 5n }),
    "no authority says that it is the newest": saying("signature", "Carol is none.", signHead(carol, nowSaid)),
    "the statement is signed in the name of an authority": saying(
      "signature",
      "It is not the signature of who is named.",
      signHead(carol, { ...nowSaid, proposer: bob.publicKey }),
    ),
    "the statement is for another network": saying(
      "network",
      "Its authority is the same, its genesis is not.",
      signHead(bob, { ...nowSaid, genesisHash: otherNetwork }),
    ),
    "the statement is of another block": saying(
      "missing",
      "It says nothing of this one.",
      stateLatest(blocks.withoutHead),
    ),
    "the statement gives this block another number": saying(
      "missing",
      "It is of no block that there is.",
      signHead(bob, { ...nowSaid, number: 8n }),
    ),
    "the statement is of another block of this number": saying(
      "missing",
      "It says nothing of this one.",
      signHead(bob, { ...nowSaid, hash: sha256("another block 7") }),
    ),
  };
};

/** All invalid responses by name. */
export function lies(): Readonly<Record<string, Lie>> {
  return { ...values(), ...absences(), ...places(), ...headers(), ...ages() };
}
