/**
 * The test vectors of examples/vectors: a node accepts the valid ones and rejects the others, and another
 * implementation of the primitives agrees. test/docs/generated.test.ts checks that the files are up to date.
 */
import { create, fromBinary, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";
import test from "ava";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TransactionBodySchema, TransactionSchema } from "../../gen/gatehouse/chain/v1/block_pb.js";
import { StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import { ZkOperationSchema } from "../../gen/gatehouse/zk/v1/operation_pb.js";
import { isStrongKey } from "../../src/base/crypto/key-validation.js";
import { loadNodeKey } from "../../src/base/crypto/node-key.js";
import { transactionMessage, verifyTransaction } from "../../src/chain/transactions/transaction.js";
import { createIdentify } from "../../src/edge/identity.js";
import { adoptGenesis } from "../../src/chain/blocks/genesis.js";
import type { ChainStore } from "../../src/chain/blocks/store.js";
import { programAddress } from "../../src/storage/changes/write.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { rulesOf } from "../helpers/chain/transactions.js";

interface Case {
  readonly name: string;
}
interface KeyVectors {
  readonly keys: readonly (Case & Record<"seed" | "publicKey" | "pem", string>)[];
  readonly refused: readonly (Case & Record<"why" | "pem", string>)[];
  readonly refusedPublicKeys: readonly (Case & Record<"publicKey", string>)[];
}
interface AddressVectors {
  readonly addresses: readonly (Case & Record<"owner" | "programName" | "nonce" | "salt" | "address", string>)[];
}
interface IdentityVectors {
  readonly identities: readonly (Case &
    Record<"seed" | "identity" | "timestamp" | "network" | "text" | "digest" | "signature", string>)[];
  readonly refused: readonly (Case & { readonly headers: Readonly<Record<string, string>> })[];
}
interface TransactionVectors {
  readonly genesis: string;
  readonly network: string;
  readonly transactions: readonly (Case &
    Record<"seed" | "encoding" | "body" | "message" | "signature" | "hash", string> & { readonly fields: JsonValue })[];
  readonly refused: readonly (Case & Record<"why" | "reason" | "body" | "signature", string>)[];
}

const load = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(`examples/vectors/${name}.json`, "utf8")) as unknown;

const bytes = (hex: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(hex.replace(/^0x/, ""), "hex"));
const hex = (content: Uint8Array): string => Buffer.from(content).toString("hex");
const hash = (text: string | Uint8Array): string =>
  hex(sha256(typeof text === "string" ? new TextEncoder().encode(text) : text));

test("reads keys from their files, and rejects invalid ones", async (t) => {
  const { keys, refused, refusedPublicKeys } = (await load("keys")) as KeyVectors;
  const dir = await temporaryDirectory(t);
  const read = async (name: string, pem: string) => {
    const path = join(dir, `${name}.key`);
    await writeFile(path, pem, { mode: 0o600 });
    return await loadNodeKey(path);
  };
  for (const { name, seed, publicKey, pem } of keys) {
    t.is((await read(name, pem)).publicKey, publicKey, name);
    t.is(`0x${hex(ed25519.getPublicKey(bytes(seed)))}`, publicKey, name);
    t.true(isStrongKey(publicKey), name);
  }
  for (const { name, pem } of refused) {
    await t.throwsAsync(read(name, pem), { message: /key/ }, name);
  }
  for (const { name, publicKey } of refusedPublicKeys) {
    t.false(isStrongKey(publicKey), name);
  }
  t.true(keys.length > 3 && refused.length > 2 && refusedPublicKeys.length > 2);
});

test("an address is the hash of its joined parts", async (t) => {
  const { addresses } = (await load("addresses")) as AddressVectors;
  for (const { name, owner, programName, nonce, salt, address } of addresses) {
    t.is(programAddress(owner, programName, BigInt(nonce), salt), address, name);
    t.is(`stor-${hash([owner, programName, nonce, salt].join(":")).slice(0, 40)}`, address, name);
  }
  t.is(new Set(addresses.map(({ address }) => address)).size, addresses.length);
});

test("an identity is valid on the network that it names, and the rejected ones are not", async (t) => {
  const { identities, refused } = (await load("identities")) as IdentityVectors;
  const { network: own } = (await load("transactions")) as TransactionVectors;
  const identify = (headers: Readonly<Record<string, string>>, network: string) =>
    createIdentify(
      { identityMode: "signed", identityForm: "network", network },
      () => 1_767_225_600_000,
    )((name) => headers[name]);
  for (const { name, seed, text, digest, ...headers } of identities) {
    const { network, identity, timestamp, signature } = headers;
    const key = `0x${hex(ed25519.getPublicKey(bytes(seed)))}`;
    t.is(text, `gatehouse-identity:${network}:${identity}:${timestamp}`, name);
    t.is(digest, hash(text), name);
    t.is(signature, `0x${hex(ed25519.sign(new TextEncoder().encode(digest), bytes(seed)))}`, name);
    t.is(identify(headers, network), key, name);
    t.throws(() => identify(headers, `0x${hash("a third")}`), { message: /signed for the network/ }, name);
  }
  for (const { name, headers } of refused) {
    t.like(
      t.throws(() => identify(headers, own), undefined, name),
      { reason: "INVALID_SIGNATURE" },
      name,
    );
  }
  t.true(refused.length > 5);
});

test("the id of a network is the hash of its genesis", async (t) => {
  const { genesis, network } = (await load("transactions")) as TransactionVectors;
  const nothing = Promise.resolve(undefined);
  const empty = { genesisText: () => nothing, insertGenesis: () => nothing } as unknown as ChainStore;
  t.is(`0x${hash(genesis)}`, network);
  t.is((await adoptGenesis(empty, { path: "genesis.json", text: genesis }))?.hash, network);
});

test("transactions are accepted, and their bodies encode their fields", async (t) => {
  const { transactions } = (await load("transactions")) as TransactionVectors;
  for (const { name, seed, fields, encoding, ...expected } of transactions) {
    const body = fromJson(TransactionBodySchema, fields);
    const isCanonical = hex(toBinary(TransactionBodySchema, body)) === expected.body;
    t.is(isCanonical ? "canonical" : "other", encoding, name);
    t.deepEqual(toJson(TransactionBodySchema, fromBinary(TransactionBodySchema, bytes(expected.body))), fields, name);
    t.is(expected.message, hex(new TextEncoder().encode("gatehouse transaction v2\0")) + expected.body, name);
    t.is(expected.signature, hex(ed25519.sign(bytes(expected.message), bytes(seed))), name);
    t.is(expected.hash, `0x${hash(bytes(expected.body))}`, name);
    const signed = create(TransactionSchema, { body: bytes(expected.body), signature: bytes(expected.signature) });
    t.is(verifyTransaction(signed, rulesOf(body.network)).hash, expected.hash, name);
  }
});

test("every operation of the contract has a transaction", async (t) => {
  const { transactions } = (await load("transactions")) as TransactionVectors;
  const covered = transactions.flatMap(({ fields }) => {
    const { operation } = fromJson(TransactionBodySchema, fields);
    return operation.case === undefined ? [] : `${operation.case} ${operation.value.operation.case}`;
  });
  const cases = (kind: string, { oneofs }: typeof StorageOperationSchema | typeof ZkOperationSchema) =>
    oneofs[0]!.fields.map(({ localName }) => `${kind} ${localName}`);
  const all = [...cases("storage", StorageOperationSchema), ...cases("zk", ZkOperationSchema)];
  t.true(all.length > 10);
  t.deepEqual([...new Set(covered)].sort(), all.sort());
  const kinds = TransactionBodySchema.oneofs[0]!.fields.map(({ localName }) => localName);
  t.deepEqual(kinds, ["storage", "zk"]);
});

test("rejects the invalid transactions with their reasons", async (t) => {
  const { network, refused } = (await load("transactions")) as TransactionVectors;
  for (const { name, reason, body, signature } of refused) {
    const signed = create(TransactionSchema, { body: bytes(body), signature: bytes(signature) });
    t.like(
      t.throws(() => verifyTransaction(signed, rulesOf(network)), undefined, name),
      { reason },
      name,
    );
  }
  t.true(refused.length > 15);
  // This one matters because the equation of the signature holds for it.
  const weak = refused.find(({ name }) => name === "the sender is of small order")!;
  const { sender } = fromBinary(TransactionBodySchema, bytes(weak.body));
  t.true(ed25519.verify(bytes(weak.signature), transactionMessage(bytes(weak.body)), bytes(sender), { zip215: true }));
});
