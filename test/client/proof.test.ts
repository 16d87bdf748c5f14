/** The verification of proofs: valid proofs of a node, and every kind of false one. */
import { clone, create, fromBinary, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import test from "ava";
import {
  checkProof,
  type ProofFlaw,
  ProofError,
  type ProofTrust,
  type ProvedState,
  questionOf,
  readProofJson,
  readProofNetwork,
} from "gatehouse-client";
import { readFile } from "node:fs/promises";
import {
  type GetProofRequest,
  GetProofRequestSchema,
  GetProofResponseSchema,
} from "../../gen/gatehouse/state/v1/state_pb.js";
import { checkState } from "../../client/src/proof/check.js";
import {
  addresses,
  answerTo,
  blocks,
  maxAgeS,
  network,
  nowMs,
  spent,
  unspent,
} from "../../tools/docs/vectors/proof-world.js";
import { createProver } from "../../tools/docs/vectors/state.js";

interface Vector {
  readonly name: string;
  readonly question: JsonValue;
  readonly answer: object;
  readonly seen?: { readonly number: string; readonly hash: string };
  readonly nowMs?: string;
}
interface ProofVectors {
  readonly genesis: string;
  readonly network: string;
  readonly nowMs: string;
  readonly maxAgeS: number;
  readonly proofs: readonly (Vector & { readonly proved: object })[];
  readonly refused: readonly (Vector & { readonly flaw: ProofFlaw })[];
}

const vectors = JSON.parse(await readFile("examples/vectors/proofs.json", "utf8")) as ProofVectors;

function trustOf({ seen, nowMs: time }: Pick<Vector, "seen" | "nowMs">): ProofTrust {
  return {
    network: readProofNetwork(vectors.genesis, vectors.network),
    nowMs: Number(time ?? vectors.nowMs),
    maxAgeS: vectors.maxAgeS,
    seen: seen && {
      hash: seen.hash,
      number: BigInt(seen.number),
      header: new Uint8Array(),
      signature: new Uint8Array(),
    },
  };
}

const questionIn = (vector: Vector): GetProofRequest => fromJson(GetProofRequestSchema, vector.question);
const check = (vector: Vector): ProvedState =>
  checkProof(questionIn(vector), readProofJson(JSON.stringify(vector.answer)), trustOf(vector));

/** Formats a verified state as the test vectors do. */
function describe({ block, program, nullifiers, senders, commitments }: ProvedState) {
  return {
    block: { number: String(block.number), hash: block.hash },
    program: program === undefined ? null : describeProgram(program),
    nullifiers: nullifiers.map(({ nullifierHash, use }) => ({
      nullifierHash,
      use: use ? { ...use, blockNumber: String(use.blockNumber) } : null,
    })),
    senders: senders.map(({ address, nonce }) => ({ address, nonce: nonce === undefined ? null : String(nonce) })),
    commitments: commitments === undefined ? null : commitments.kind === "changed" ? { kind: "changed" } : commitments,
  };
}

function describeProgram(program: NonNullable<ProvedState["program"]>) {
  if (program.kind !== "present") {
    return { kind: program.kind };
  }
  const { record, document, data, metadata, fields } = program;
  const { deleted, owner, programName, sizeBytes } = record;
  return {
    ...{ kind: "present", deleted, owner, programName, sizeBytes, document },
    ...{ data: data ?? null, metadata: metadata ?? null },
    fields: [...fields].map(([name, value]) => ({ name, exists: value !== undefined })),
  };
}

test("valid proofs prove the states in the vectors", (t) => {
  for (const vector of vectors.proofs) {
    t.deepEqual(describe(check(vector)), vector.proved, vector.name);
  }
  t.true(vectors.proofs.length > 20);
});

test("rejects every false proof, with its flaw", (t) => {
  for (const vector of vectors.refused) {
    const error = t.throws(() => check(vector), { instanceOf: ProofError }, vector.name);
    t.is(error.flaw, vector.flaw, `${vector.name}: ${error.message}`);
    t.is(error.reason, "UNPROVED");
    t.regex(error.message, /^[A-Z].*\.$/s, vector.name);
    t.is(error.evidence !== undefined, error.flaw === "fork", vector.name);
  }
  t.true(vectors.refused.length > 50);
  const flaws = new Set(vectors.refused.map(({ flaw }) => flaw));
  const all = ["age", "fork", "malformed", "missing", "network", "path", "rollback", "signature", "value"] as const;
  t.deepEqual([...flaws].sort(), [...all]);
});

const everything = vectors.proofs.find(({ name }) => name === "everything at once")!;

test("the request of a proof can be derived from the response", (t) => {
  const { block: _, ...request } = questionIn(everything);
  t.deepEqual(questionOf(readProofJson(JSON.stringify(everything.answer))), create(GetProofRequestSchema, request));
});

test("rejects JSON that is not a proof", (t) => {
  const failure = '{"success":false,"error":"There is no such block yet.","errorCode":"NOT_FOUND"}';
  for (const text of [
    "",
    "null",
    "[]",
    '"header"',
    '{"header":',
    failure,
    '{"header":"~"}',
    '{"header":"","head":7}',
  ]) {
    t.like(
      t.throws(() => readProofJson(text)),
      { name: "ProofError", flaw: "malformed" },
      text,
    );
  }
});

const text = JSON.stringify(everything.answer);

test("reads numbers and base64 of a proof exactly, in each form of ProtoJSON", (t) => {
  const { header } = everything.answer as { readonly header: string };
  const read = readProofJson(text);
  t.deepEqual(readProofJson(text.replace(header, header.replaceAll("+", "-").replaceAll("/", "_"))), read);
  t.deepEqual(readProofJson(text.replace(header, header.replace(/=+$/, ""))), read);
  const nonceOf = (number: string): unknown =>
    readProofJson(`{"header":"","senders":[{"address":"a","nonce":${number}}]}`).senders[0]?.state.value;
  t.is(nonceOf("18446744073709551615"), 18446744073709551615n);
  t.is(nonceOf('"18446744073709551615"'), 18446744073709551615n);
  t.is(nonceOf("9007199254740993"), 9007199254740993n);
  t.is(nonceOf("1.0"), 1n);
  t.is(nonceOf("2e3"), 2000n);
  for (const number of [
    '"0x10"',
    '""',
    '" 7"',
    '"7 "',
    '"+7"',
    '"07"',
    "1.5",
    "-1",
    "18446744073709551616",
    "[7]",
    "true",
  ]) {
    t.throws(() => nonceOf(number), { name: "ProofError" }, number);
  }
  for (const [what, wrong] of Object.entries({
    "white space in base64": `${header.slice(0, 4)} ${header.slice(4)}`,
    "padding inside": `${header.slice(0, 4)}=${header.slice(4)}`,
    "bits after the last byte": "AB==",
    "too little padding": "AA=",
    "one digit too many": "AAAAA",
  })) {
    t.throws(() => readProofJson(text.replace(header, wrong)), { name: "ProofError" }, what);
  }
  t.throws(() => readProofJson(text.replace("{", '{"header":"",')), { name: "ProofError", message: /two members/ });
});

/** Flips each of these bits in turn, calls a function, and flips it back. */
function flipEach(bytes: Uint8Array, bits: Iterable<number>, visit: (bit: number) => void): void {
  for (const bit of bits) {
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    visit(bit);
    bytes[bit >> 3]! ^= 1 << (bit & 7);
  }
}

test("a proof with a flipped bit is rejected, or proves the same", (t) => {
  const request = create(GetProofRequestSchema, {
    storageAddress: addresses.spaced,
    fields: ["a", "c"],
    withDocument: true,
    nullifiers: [spent, unspent],
    withCommitments: true,
  });
  const { prover } = blocks.newest;
  const root = Buffer.from(prover.root.slice(2), "hex");
  const answer = prover.prove(request);
  const proved = checkState(request, answer, root);
  const bytes = toBinary(GetProofResponseSchema, answer);
  let rejected = 0;
  flipEach(bytes, Array(bytes.length * 8).keys(), (bit) => {
    let found: typeof proved;
    try {
      // Some bits make a field unknown or repeated.
      found = checkState(request, fromBinary(GetProofResponseSchema, bytes), root);
    } catch {
      rejected++;
      return;
    }
    t.deepEqual(found, proved, `bit ${bit}`);
  });
  t.log(`${rejected} of ${bytes.length * 8} rejected`);
  t.true(rejected > 0.99 * bytes.length * 8);
});

test("rejects a flipped bit in a header, signature or statement", (t) => {
  const question = { withCommitments: true };
  const answer = clone(GetProofResponseSchema, answerTo(question));
  const trust = { network: readProofNetwork(network.genesis), nowMs, maxAgeS };
  t.notThrows(() => checkProof(question, answer, trust));
  const parts = [answer.header, answer.signature, answer.head!.statement, answer.head!.signature];
  for (const part of parts) {
    // Every fifth bit only, because each check takes 1 to 2 ms.
    const bits = [...Array(part.length * 8).keys()].filter((bit) => bit % 5 === 0);
    flipEach(part, bits, () => t.throws(() => checkProof(question, answer, trust), { name: "ProofError" }));
  }
});

test("a document is proved by its text, for any number of fields", (t) => {
  const names = Array.from({ length: 3_000 }, (_, i) => `field ${i}`);
  const data = JSON.stringify(Object.fromEntries(names.map((name, i) => [name, i])));
  const address = `stor-${"a".repeat(40)}`;
  const prover = createProver({ programs: { [address]: { record: {}, data } } });
  const request = create(GetProofRequestSchema, {
    storageAddress: address,
    withDocument: true,
    fields: ["field 7", "no"],
  });
  const root = Buffer.from(prover.root.slice(2), "hex");
  const answer = prover.prove(request);
  const { program } = checkState(request, answer, root);
  t.like(program, { kind: "present", data });
  t.true(program?.kind === "present" && program.fields.get("field 7") === "7" && program.fields.has("no"));
  const state = answer.program!.state.value as { data?: string };
  for (const wrong of [data.replace("2999", "2998"), data.slice(0, -1), `${data} `, "[]", '{"a', "", '{"a":1,"a":1}']) {
    state.data = wrong;
    t.like(
      t.throws(() => checkState(request, answer, root)),
      { flaw: "value" },
      wrong.slice(0, 20),
    );
  }
});

test("rejects the record of another program, even in a signed state", (t) => {
  const [one, other] = [`stor-${"a".repeat(40)}`, `stor-${"b".repeat(40)}`];
  const prover = createProver({ programs: { [one]: { record: { storageAddress: other } } } });
  const request = create(GetProofRequestSchema, { storageAddress: one });
  const root = Buffer.from(prover.root.slice(2), "hex");
  t.like(
    t.throws(() => checkState(request, prover.prove(request), root)),
    { flaw: "value" },
  );
});
