/** Generates examples/vectors/transactions.json: transaction bodies, the signed bytes, signatures and hashes. */
import { create, toBinary, toJson } from "@bufbuild/protobuf";
import { TransactionBodySchema } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { transactionMessage } from "../../../src/chain/transactions/transaction.js";
import type { Reason } from "../../../src/rpc/errors.js";
import { alice, bob, type VectorKey, weakKey, weakSignature } from "./keys.js";
import { genesis, network, otherNetwork } from "./network.js";
import { json, type Operation, operations, storage } from "./operations.js";

/** TransactionBody as an object literal. */
interface Fields {
  readonly sender: string;
  readonly nonce: bigint;
  readonly timestampMs: bigint;
  readonly network: string;
  readonly expiresMs: bigint;
  readonly operation?: Operation;
}

const operation = operations["add an item to an array"]!;

/** Numbers the transactions of one sender, as a client would. */
const ordinary: readonly (readonly [string, Fields, VectorKey])[] = Object.entries(operations).map(
  ([name, each], i) => [name, fieldsOf(alice, { operation: each, nonce: BigInt(i + 1) }), alice],
);
const odd: readonly (readonly [string, Fields, VectorKey])[] = [
  ["of another sender", fieldsOf(bob, { operation }), bob],
  ["the time as the nonce", fieldsOf(alice, { operation, nonce: 1_767_225_600_000n }), alice],
  ["the largest nonce", fieldsOf(alice, { operation, nonce: 9_007_199_254_740_991n }), alice],
  ["for another network", fieldsOf(alice, { operation, network: otherNetwork }), alice],
  ["without the time, which is for people", fieldsOf(alice, { operation, timestampMs: 0n }), alice],
];

function fieldsOf({ publicKey: sender }: VectorKey, fields: Partial<Fields>): Fields {
  return { sender, nonce: 1n, timestampMs: 1_767_225_600_000n, network, expiresMs: 1_767_226_200_000n, ...fields };
}

function encode(fields: Fields): Buffer {
  return Buffer.from(toBinary(TransactionBodySchema, create(TransactionBodySchema, fields)));
}

/**
 * Encodes the same transaction in bytes that this project's encoder does not write. Nodes accept them, under another
 * hash.
 */
function otherwiseEncoded(): readonly (readonly [string, Fields, Buffer])[] {
  const item = operations["replace the first item of an array: its index is 0, and not written"]!;
  const fields = fieldsOf(alice, { operation: item });
  const body = encode(fields);
  // The encoded body is the other fields (`head`), followed by the operation.
  const { operation: _, ...others } = fields;
  const head = encode(others);
  const group = fieldsOf(alice, { operation: operations["let a group write"] });
  const noTime = fieldsOf(alice, { operation: item, timestampMs: 0n });
  return [
    ["its fields in another order", fields, Buffer.concat([body.subarray(head.length), head])],
    ["a field that is 0 is written", noTime, Buffer.concat([encode(noTime), Buffer.from([0x18, 0x00])])],
    ["a number with more bytes than it needs", fields, replaced(body, "1001", "108100")],
    [
      "a list of enums written one by one, as prost of Rust does",
      group,
      replaced(encode(group), "12020102", "10011002"),
    ],
  ];
}

/** Replaces some bytes, in hex. */
function replaced(body: Buffer, from: string, to: string): Buffer {
  const at = body.indexOf(Buffer.from(from, "hex"));
  return Buffer.concat([body.subarray(0, at), Buffer.from(to, "hex"), body.subarray(at + from.length / 2)]);
}

/** Transactions that every node rejects, with the error reason and an explanation. */
interface Refused {
  readonly reason: Reason;
  readonly why: string;
  readonly body: Uint8Array;
  readonly signature?: Uint8Array;
}

function refused(): Readonly<Record<string, Refused>> {
  const body = encode(fieldsOf(alice, { operation }));
  const message = transactionMessage(body);
  const INVALID_SIGNATURE = { reason: "INVALID_SIGNATURE", body } as const;
  const invalid = (why: string, fields: Partial<Fields>) =>
    ({ reason: "INVALID_REQUEST", why, body: encode(fieldsOf(alice, { operation, ...fields })) }) as const;
  const named = (programName: string, salt = "") =>
    storage({ case: "createProgram", value: { programName, salt, data: json("{}") } });
  const document = (text: string) =>
    storage({ case: "createProgram", value: { programName: "notes", data: json(text) } });
  return {
    "the body alone is signed": {
      ...INVALID_SIGNATURE,
      why: "The prefix is missing in what is signed.",
      signature: alice.sign(body),
    },
    "the prefix ends without its zero byte": {
      ...INVALID_SIGNATURE,
      why: "The zero byte is part of what is signed.",
      signature: alice.sign(Buffer.concat([Buffer.from("gatehouse transaction v2"), body])),
    },
    "the hash is signed": {
      ...INVALID_SIGNATURE,
      why: "What is signed are the bytes of the body, not their hash.",
      signature: alice.sign(Buffer.from(sha256(body).slice(2), "hex")),
    },
    "another key signs": {
      ...INVALID_SIGNATURE,
      why: "The signature is that of the sender.",
      signature: bob.sign(message),
    },
    "a bit of the signature is another": {
      ...INVALID_SIGNATURE,
      why: "It fits nothing.",
      signature: flipped(alice.sign(message)),
    },
    "the signature is cut": {
      ...INVALID_SIGNATURE,
      why: "It has 64 bytes.",
      signature: alice.sign(message).subarray(0, 63),
    },
    "the sender is of small order": {
      ...INVALID_SIGNATURE,
      why: "Anybody can sign for it; by the equation alone this signature would hold.",
      body: encode(fieldsOf(alice, { operation, sender: weakKey })),
      signature: weakSignature,
    },
    "the sender is in upper case": invalid("Hex digits are lower case.", {
      sender: `0x${alice.publicKey.slice(2).toUpperCase()}`,
    }),
    "the sender is without 0x": invalid("Keys begin with 0x.", { sender: alice.publicKey.slice(2) }),
    "it names no network": invalid("A transaction is for one network.", { network: "" }),
    "it is for another network": invalid("The network that is asked is the one above.", { network: otherNetwork }),
    "the nonce is too large": invalid("The largest is 2^53 - 1.", { nonce: 2n ** 53n }),
    "it says nothing to do": {
      reason: "INVALID_REQUEST",
      why: "An operation must be set.",
      body: encode(fieldsOf(alice, {})),
    },
    "it has a field that nobody knows": {
      reason: "INVALID_REQUEST",
      why: "What a node does not know, it does not take.",
      body: Buffer.concat([body, Buffer.from([0xa0, 0x06, 0x01])]),
    },
    "the body is cut": {
      reason: "INVALID_REQUEST",
      why: "It cannot be read.",
      body: body.subarray(0, -1),
    },
    "a colon in the salt": invalid("Two programs could have one address.", { operation: named("a", "7:x") }),
    "a NUL in the name": invalid("Names hold no NUL.", { operation: named("a\0b") }),
    "no name": invalid("A name has 1 to 1,024 bytes.", { operation: named("") }),
    "an address in upper case": invalid("It is stor- and 40 lower-case hex digits.", {
      operation: storage({
        case: "deleteProgram",
        value: { storageAddress: `stor-${"ABCDEF0123456789".repeat(3).slice(0, 40)}` },
      }),
    }),
    "a document that is no JSON": invalid("JSON ends without a comma.", { operation: document('{"a": 1,}') }),
    "a document with a member twice": invalid("Nobody could say what it holds.", {
      operation: document('{"a": 1, "a": 2}'),
    }),
    "no document": invalid("An empty text is no JSON; leave data out for a program that holds nothing.", {
      operation: document(""),
    }),
  };
}

function flipped(signature: Buffer): Buffer {
  signature[0]! ^= 1;
  return signature;
}

export function transactionVectors(): string {
  return JSON.stringify({
    genesis,
    network,
    transactions: [
      ...[...ordinary, ...odd].map(([name, fields, key]) => vector(name, "canonical", key, fields, encode(fields))),
      ...otherwiseEncoded().map(([name, fields, body]) => vector(name, "other", alice, fields, body)),
    ],
    refused: Object.entries(refused()).map(([name, { reason, why, body, signature }]) => ({
      name,
      why,
      reason,
      body: hex(body),
      signature: hex(signature ?? alice.sign(transactionMessage(body))),
    })),
  });
}

function vector(name: string, encoding: "canonical" | "other", key: VectorKey, fields: Fields, body: Buffer) {
  const message = transactionMessage(body);
  return {
    name,
    seed: key.seed,
    fields: toJson(TransactionBodySchema, create(TransactionBodySchema, fields)),
    encoding,
    body: hex(body),
    message: hex(message),
    signature: hex(key.sign(message)),
    hash: sha256(body),
  };
}

/** Bytes in hex without 0x, unlike texts of the API. */
function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
