/** Builders of what a transaction does, one for each operation of the chain. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ProgramDataSchema, StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import {
  type AccessControlSchema,
  AccessMode as Mode,
  AccessPermission as Permission,
} from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { Operation } from "./transaction.js";

/** A value that JSON can write. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** JSON as it is to be kept, letter by letter. */
export class JsonText {
  constructor(readonly text: string) {}
}

/**
 * JSON that is written already: numbers keep all of their digits, and members their order.
 *
 * @throws SyntaxError when it is no JSON.
 */
export function jsonText(text: string): JsonText {
  JSON.parse(text);
  return new JsonText(text);
}

/** A document, or bytes. */
export type ProgramContent = Json | JsonText | Uint8Array;

/** Who may read a program, and which groups may change its data; the owner may always. */
export type Access = AccessMode | AccessRule;

/** Everybody reads it, its owner alone, or those that its rule names. */
export type AccessMode = "public" | "owner" | "restricted";

/** Who may do what. */
export interface AccessRule {
  readonly mode: AccessMode;
  /** Public keys that may read a restricted program: 0x and 64 lower-case hex digits each. */
  readonly allowed?: readonly string[];
  /** Public keys that may never read it. */
  readonly blacklisted?: readonly string[];
  /** Groups by their names. */
  readonly groups?: Readonly<Record<string, AccessGroup>>;
}

/** Keys with permissions of their own. */
export interface AccessGroup {
  readonly members: readonly string[];
  readonly permissions: readonly ("read" | "write")[];
}

/** A program that is to be made. */
export interface NewProgram {
  /** 1 to 1,024 bytes; need not be unique. */
  readonly name: string;
  /** What it holds; nothing when left out. */
  readonly data?: ProgramContent | undefined;
  /** Part of its address; without a colon. */
  readonly salt?: string | undefined;
  /** An object to keep with it. */
  readonly metadata?: { readonly [name: string]: Json } | JsonText | undefined;
  /** The owner alone reads it when left out. */
  readonly access?: Access | undefined;
}

/** An operation that makes a program, whose address is known once it is signed. */
export type ProgramCreation = Extract<Operation, { case: "storage" }> & {
  readonly value: { readonly operation: { readonly case: "createProgram" } };
};

/** Makes a program, owned by the signer. */
export function createProgram({ name, data, salt = "", metadata, access }: NewProgram): ProgramCreation {
  return storage({
    case: "createProgram",
    value: {
      programName: name,
      salt,
      ...(data !== undefined && { data: toData(data) }),
      ...(metadata !== undefined && { metadata: toText(metadata) }),
      ...(access !== undefined && { access: toAccess(access) }),
    },
  });
}

/** Replaces what a program holds. */
export function writeProgram(storageAddress: string, data: ProgramContent): Operation {
  return storage({ case: "writeProgram", value: { storageAddress, data: toData(data) } });
}

/** Gives a field of a document a value. */
export function setField(storageAddress: string, field: string, value: Json | JsonText): Operation {
  return storage({ case: "setField", value: { storageAddress, field, value: toText(value) } });
}

/** Replaces an item of a field that is an array; the first one has the index 0. */
export function setItem(storageAddress: string, field: string, index: number, value: Json | JsonText): Operation {
  return storage({ case: "setItem", value: { storageAddress, field, index, value: toText(value) } });
}

/** Adds an item to the end of a field that is an array. */
export function appendItem(storageAddress: string, field: string, value: Json | JsonText): Operation {
  return storage({ case: "appendItem", value: { storageAddress, field, value: toText(value) } });
}

/** Takes a field away. */
export function deleteField(storageAddress: string, field: string): Operation {
  return storage({ case: "deleteField", value: { storageAddress, field } });
}

/** Takes an item of a field that is an array away. */
export function deleteItem(storageAddress: string, field: string, index: number): Operation {
  return storage({ case: "deleteItem", value: { storageAddress, field, index } });
}

/** Replaces the rule of who may read and write; the owner alone may. */
export function updateAccess(storageAddress: string, access: Access): Operation {
  return storage({ case: "updateAccess", value: { storageAddress, access: toAccess(access) } });
}

/** Deletes a program; the owner alone may. */
export function deleteProgram(storageAddress: string): Operation {
  return storage({ case: "deleteProgram", value: { storageAddress } });
}

/** Adds a leaf to the commitment tree: an element of BN254's scalar field, a number or 0x and 64 hex digits. */
export function addCommitment(commitment: bigint | string): Operation {
  return { case: "zk", value: { operation: { case: "addCommitment", value: { commitment: toElement(commitment) } } } };
}

/** A Groth16 proof in the JSON form that circom's tools write. */
export interface CircomProof {
  readonly pi_a: readonly string[];
  readonly pi_b: readonly (readonly string[])[];
  readonly pi_c: readonly string[];
}

/** A nullifier that is to be spent, with its proof where the network asks for one. */
export interface NullifierSpend {
  readonly nullifierHash: bigint | string;
  /** The root that the proof was made for. */
  readonly root?: bigint | string | undefined;
  /** As circom's tools write it, or the points as EIP-196 and EIP-197 encode them. */
  readonly proof?: CircomProof | { readonly a: Uint8Array; readonly b: Uint8Array; readonly c: Uint8Array } | undefined;
}

/** Spends a nullifier, once and for ever. */
export function spendNullifier({ nullifierHash, root, proof }: NullifierSpend): Operation {
  const value = {
    nullifierHash: toElement(nullifierHash),
    root: root === undefined ? "" : toElement(root),
    ...(proof !== undefined && { proof: "pi_a" in proof ? readCircomProof(proof) : proof }),
  };
  return { case: "zk", value: { operation: { case: "spendNullifier", value } } };
}

type Change = NonNullable<MessageInitShape<typeof StorageOperationSchema>["operation"]>;

function storage<C extends Change>(operation: C): { case: "storage"; value: { operation: C } } {
  return { case: "storage", value: { operation } };
}

function toData(content: ProgramContent): MessageInitShape<typeof ProgramDataSchema> {
  return content instanceof Uint8Array
    ? { data: { case: "binary", value: Uint8Array.from(content) } }
    : { data: { case: "json", value: toText(content) } };
}

function toText(value: Json | JsonText): string {
  if (value instanceof JsonText) {
    return value.text;
  }
  // Undefined, for what JSON does not know, whatever the types say.
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) {
    throw new TypeError(`JSON cannot write ${typeof value}.`);
  }
  return text;
}

const modes = { public: Mode.PUBLIC, owner: Mode.OWNER, restricted: Mode.RESTRICTED };
const permissionWords = { read: Permission.READ, write: Permission.WRITE };

function toAccess(access: Access): MessageInitShape<typeof AccessControlSchema> {
  const {
    mode,
    allowed = [],
    blacklisted = [],
    groups = {},
  }: AccessRule = typeof access === "string" ? { mode: access } : access;
  return {
    mode: modes[mode],
    allowed: [...allowed],
    blacklisted: [...blacklisted],
    groups: Object.fromEntries(
      Object.entries(groups).map(([name, { members, permissions }]) => [
        name,
        { members: [...members], permissions: permissions.map((word) => permissionWords[word]) },
      ]),
    ),
  };
}

/** 0x and 64 lower-case hex digits. */
function toElement(element: bigint | string): string {
  return typeof element === "string" ? element.toLowerCase() : `0x${element.toString(16).padStart(64, "0")}`;
}

/** The points as the contract has them: of a coordinate in the extension field the imaginary part comes first. */
function readCircomProof({ pi_a: a, pi_b: b, pi_c: c }: CircomProof) {
  return {
    a: encodeWords(a[0], a[1]),
    b: encodeWords(b[0]?.[1], b[0]?.[0], b[1]?.[1], b[1]?.[0]),
    c: encodeWords(c[0], c[1]),
  };
}

function encodeWords(...decimals: readonly (string | undefined)[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(32 * decimals.length);
  decimals.forEach((decimal, word) => {
    if (decimal === undefined || !/^\d{1,78}$/.test(decimal)) {
      throw new TypeError("A proof's coordinates must be decimal numbers, as circom's tools write them.");
    }
    let rest = BigInt(decimal);
    for (let i = 31; i >= 0; i--, rest >>= 8n) {
      bytes[32 * word + i] = Number(rest & 0xffn);
    }
  });
  return bytes;
}
