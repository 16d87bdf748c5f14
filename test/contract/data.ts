/** Data of the member node in the contract suite. */
import { sha256 } from "../../src/base/crypto/hash.js";
import { genesisOf, type TestKey, testKey } from "../helpers/chain/keys.js";
import {
  commit,
  createPublic,
  signTransaction,
  type SigningOptions,
  signZk,
  spend,
} from "../helpers/chain/transactions.js";
import type { SeedProgram } from "../helpers/chain/seed.js";
import type { CallerName } from "./case.js";

const key = (digit: string): string => `0x${digit.repeat(64)}`;
const address = (digit: string): string => `stor-${digit.repeat(40)}`;

/** Signers of requests. */
export const people: Readonly<Record<CallerName, TestKey>> = {
  owner: testKey(21),
  friend: testKey(22),
  member: testKey(23),
  enemy: testKey(24),
};

/** Public keys of the signers. */
export const owner = people.owner.publicKey;
export const friend = people.friend.publicKey;
export const member = people.member.publicKey;
export const enemy = people.enemy.publicKey;

/** Addresses of the programs. */
export const exotic = address("1");
export const shared = address("2");
export const hidden = address("3");
export const deleted = address("4");
export const binary = address("5");
export const list = address("6");
export const empty = address("7");
export const unknown = address("0");

const createdMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

const exoticFields = [
  ["name", "string", '"ann\\u0000\\ud800"'],
  ["ratio", "number", "1.0"],
  ["big", "number", "12345678901234567890"],
  ["items", "array", '[ 1.0, "a,]\\"", {"b": [2, 3]},null ]'],
  ["none", "array", "[ ]"],
  ["flag", "boolean", "false"],
  ["nothing", "null", "null"],
  ["nested", "object", '{"x": {"y": [1]}}'],
  ["constructor", "number", "1"],
  ["__proto__", "string", '"own"'],
  ["a.b", "number", "2"],
  ['a"b', "number", "3"],
  ["a/b", "number", "4"],
  ["", "number", "5"],
  ["ключ 😀", "number", "6"],
  [" ", "number", "7"],
] as const;

/** The programs, without their times. The default is a public program of the owner. */
const described: readonly (Pick<SeedProgram, "address" | "name" | "type"> & Partial<SeedProgram>)[] = [
  {
    address: exotic,
    name: "Exotic 100%",
    type: "object",
    data: `{ ${exoticFields.map(([name, , value]) => `${JSON.stringify(name)}: ${value}`).join(",")} }`,
    fields: exoticFields,
    metadata: '{"purpose": "names", "version": 1.0}',
    access: { blacklisted: [enemy] },
  },
  {
    address: shared,
    name: "shared",
    mode: "restricted",
    type: "object",
    data: '{"secret":[1]}',
    fields: [["secret", "array", "[1]"]],
    access: {
      allowed: [friend, enemy],
      blacklisted: [enemy],
      groups: { team: { members: [member], permissions: ["read", "write"] } },
    },
  },
  {
    address: hidden,
    name: "hidden",
    mode: "owner",
    type: "object",
    data: '{"secret":[2]}',
    fields: [["secret", "array", "[2]"]],
  },
  // The program's data was deleted.
  { address: deleted, name: "deleted", type: "object", deleted: true },
  { address: binary, name: "binary", type: "binary", data: '"AAEC/w=="' },
  {
    address: list,
    owner: friend,
    name: "exotic_list",
    type: "array",
    data: '[1, 2.50,"three"]',
    access: { groups: { team: { members: [owner], permissions: ["read"] } } },
  },
  { address: empty, owner: friend, name: "EXOTIC", type: "null" },
];
export const programs: readonly SeedProgram[] = described.map((program, i) => ({
  ...{ owner, mode: "public", ...program },
  createdMs: createdMs + i,
}));

/** Two authorities, so that no node produces blocks alone. */
export const authorities = [testKey(11), testKey(12)] as const;
/** Time of all blocks except the last. That is 11 minutes later, so that only the number of blocks keeps roots known. */
export const blockTimeMs = createdMs + 60_000;
export const lastBlockTimeMs = blockTimeMs + 11 * 60_000;

const writer = testKey(13);

const network = sha256(genesisOf(...authorities));
/** Transactions in blocks expire at a fixed time; those submitted to the running node expire later. */
const old: SigningOptions = { network, expiresMs: blockTimeMs + 3_600_000 };

const written = signTransaction(writer, 1, createPublic("written", '{"a":1}'), old);
const broken = signTransaction(writer, 2, { case: "deleteProgram", value: { storageAddress: unknown } }, old);
export const includedHash = sha256(written.body);
export const rejectedHash = sha256(broken.body);

const element = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`;
/** Leaves of the commitment tree. */
export const leaves = [1n, 2n, 0xabcn].map(element) as [string, string, string];
/** A nullifier that block 3 spends. */
export const spentNullifier = key("d");
const committer = testKey(14);

/**
 * The transactions of the blocks from 1 on; one of block 1 is rejected. With this number of blocks, the root after
 * block 1 is not known any more. The root after block 2 is current until the last block, so it is still known.
 */
export const blocks = [
  [written, broken, signZk(committer, 1, commit(leaves[0]), old)],
  [signZk(committer, 2, commit(leaves[1]), old)],
  [signZk(authorities[0], 1, spend(spentNullifier), old)],
  ...Array.from({ length: 258 }, (_, i) => [signZk(authorities[0], i + 2, spend(element(BigInt(i))), old)]),
  [signZk(committer, 3, commit(leaves[2]), old)],
];
export const lastBlock = blocks.length;
/** Hash of block 1, equal in every run: its bytes are fixed, and Ed25519 is deterministic. */
export const firstBlockHash = "0xa44b3960fb4f82b1500bc8e41185daf65562d86d2ef9e84583a34b92f7b0339b";
export const pendingTransaction = signTransaction(writer, 3, createPublic("pending", "{}"), { network });
export const pendingHash = sha256(pendingTransaction.body);
/** The pending transaction in snapshots, with a fixed expiry; that of the real one differs in every run. */
const stablePending = signTransaction(writer, 3, createPublic("pending", "{}"), old);

/** Replaces the pending transaction of this run by the one in snapshots. */
export function withStablePending(text: string): string {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  return text
    .replaceAll(pendingHash, sha256(stablePending.body))
    .replaceAll(base64(pendingTransaction.body), base64(stablePending.body))
    .replaceAll(base64(pendingTransaction.signature), base64(stablePending.signature));
}
export const forgedTransaction = { ...pendingTransaction, signature: Buffer.alloc(64) };
export const usedNonce = signTransaction(writer, 1, createPublic("again", "{}"), { network });
