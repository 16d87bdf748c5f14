/** Builders for the operations of the chain. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ProgramDataSchema, StorageOperationSchema } from "../../gen/gatehouse/storage/v1/operation_pb.js";
import {
  type AccessControlSchema,
  AccessMode as Mode,
  AccessPermission as Permission,
} from "../../gen/gatehouse/storage/v1/storage_pb.js";
import type { Operation } from "./transaction.js";

/** Value that JSON can represent. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** JSON text that is stored byte for byte. */
export class JsonText {
  constructor(readonly text: string) {}

  /**
   * Rejects a text inside of another value, where JSON.stringify cannot keep it.
   *
   * @throws TypeError
   */
  toJSON(): never {
    throw new TypeError("jsonText() replaces a whole value or document; write the value around it as text, too.");
  }
}

/**
 * Wraps existing JSON text, so that numbers keep all of their digits and members their order.
 *
 * @throws SyntaxError if the text is not JSON.
 */
export function jsonText(text: string): JsonText {
  JSON.parse(text);
  return new JsonText(text);
}

/** Content of a program: a document, or bytes. */
export type ProgramContent = Json | JsonText | Uint8Array;

/** Access to a program: its readers, and the groups that may change its data. The owner always has access. */
export type Access = AccessMode | AccessRule;

/** Readers of a program: all callers, its owner only, or those that its rule names. */
export type AccessMode = "public" | "owner" | "restricted";

/** Access rule of a program. */
export interface AccessRule {
  readonly mode: AccessMode;
  /** Public keys that may read a restricted program: 0x and 64 lower-case hex digits each. */
  readonly allowed?: readonly string[];
  /** Public keys that may never read it. */
  readonly blacklisted?: readonly string[];
  /** Groups by name. */
  readonly groups?: Readonly<Record<string, AccessGroup>>;
}

/** Group of keys with common permissions. */
export interface AccessGroup {
  readonly members: readonly string[];
  readonly permissions: readonly ("read" | "write")[];
}

/** Program to create. */
export interface NewProgram {
  /** Name of 1 to 1,024 bytes; need not be unique. */
  readonly name: string;
  /** Content of the program; empty if left out. */
  readonly data?: ProgramContent | undefined;
  /** Part of the input of the address; must not contain a colon. */
  readonly salt?: string | undefined;
  /** Object to store with the program. */
  readonly metadata?: { readonly [name: string]: Json } | JsonText | undefined;
  /** Access. Default: only the owner reads the program. */
  readonly access?: Access | undefined;
}

/** Operation that creates a program. Its address is known once the transaction is signed. */
export type ProgramCreation = Extract<Operation, { case: "storage" }> & {
  readonly value: { readonly operation: { readonly case: "createProgram" } };
};

/** Creates a program, owned by the signer. */
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

/** Replaces the content of a program. */
export function writeProgram(storageAddress: string, data: ProgramContent): Operation {
  return storage({ case: "writeProgram", value: { storageAddress, data: toData(data) } });
}

/** Sets a field of a document. */
export function setField(storageAddress: string, field: string, value: Json | JsonText): Operation {
  return storage({ case: "setField", value: { storageAddress, field, value: toText(value) } });
}

/** Replaces an item of an array field; the first item has index 0. */
export function setItem(storageAddress: string, field: string, index: number, value: Json | JsonText): Operation {
  return storage({ case: "setItem", value: { storageAddress, field, index, value: toText(value) } });
}

/** Appends an item to an array field. */
export function appendItem(storageAddress: string, field: string, value: Json | JsonText): Operation {
  return storage({ case: "appendItem", value: { storageAddress, field, value: toText(value) } });
}

export function deleteField(storageAddress: string, field: string): Operation {
  return storage({ case: "deleteField", value: { storageAddress, field } });
}

/** Deletes an item of an array field. */
export function deleteItem(storageAddress: string, field: string, index: number): Operation {
  return storage({ case: "deleteItem", value: { storageAddress, field, index } });
}

/** Replaces the access rule; only the owner may do so. */
export function updateAccess(storageAddress: string, access: Access): Operation {
  return storage({ case: "updateAccess", value: { storageAddress, access: toAccess(access) } });
}

/** Deletes a program; only the owner may do so. */
export function deleteProgram(storageAddress: string): Operation {
  return storage({ case: "deleteProgram", value: { storageAddress } });
}

/**
 * Adds a leaf to the commitment tree: an element of the scalar field of BN254, as a number or as 0x and 64 hex digits.
 */
export function addCommitment(commitment: bigint | string): Operation {
  return { case: "zk", value: { operation: { case: "addCommitment", value: { commitment: toElement(commitment) } } } };
}

/** Groth16 proof in the JSON form of circom's tools. */
export interface CircomProof {
  readonly pi_a: readonly string[];
  readonly pi_b: readonly (readonly string[])[];
  readonly pi_c: readonly string[];
}

/** Nullifier to spend, with a proof if the network requires one. */
export interface NullifierSpend {
  readonly nullifierHash: bigint | string;
  /** Root of the commitment tree that the proof refers to. */
  readonly root?: bigint | string | undefined;
  /** Proof as circom's tools write it, or points encoded as in EIP-196 and EIP-197. */
  readonly proof?: CircomProof | { readonly a: Uint8Array; readonly b: Uint8Array; readonly c: Uint8Array } | undefined;
}

/** Spends a nullifier. Each can be spent only once. */
export function spendNullifier({ nullifierHash, root, proof }: NullifierSpend): Operation {
  const value = {
    nullifierHash: toElement(nullifierHash),
    root: root === undefined ? "" : toElement(root),
    ...(proof !== undefined && { proof: "pi_a" in proof ? encodeCircomProof(proof) : proof }),
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
  // JSON.stringify returns undefined for a value that JSON cannot represent; its type does not say so.
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) {
    throw new TypeError(`JSON cannot write ${typeof value}.`);
  }
  return text;
}

const modes = { public: Mode.PUBLIC, owner: Mode.OWNER, restricted: Mode.RESTRICTED };
const permissionValues = { read: Permission.READ, write: Permission.WRITE };

function toAccess(access: Access): MessageInitShape<typeof AccessControlSchema> {
  const {
    mode,
    allowed = [],
    blacklisted = [],
    groups = {},
  }: AccessRule = typeof access === "string" ? { mode: access } : access;
  // A property of this name is the prototype in an object literal and in decoded messages, which lose the group.
  const prototype = Object.getPrototypeOf(groups) as object | null;
  if (Object.hasOwn(groups, "__proto__") || (prototype !== null && Object.getPrototypeOf(prototype) !== null)) {
    throw new TypeError("A group of an access rule must not be named __proto__.");
  }
  return {
    mode: modes[mode],
    allowed: [...allowed],
    blacklisted: [...blacklisted],
    groups: Object.fromEntries(
      Object.entries(groups).map(([name, { members, permissions }]) => [
        name,
        { members: [...members], permissions: permissions.map((permission) => permissionValues[permission]) },
      ]),
    ),
  };
}

/** Encodes an element as 0x and 64 lower-case hex digits. */
function toElement(element: bigint | string): string {
  return typeof element === "string" ? element.toLowerCase() : `0x${element.toString(16).padStart(64, "0")}`;
}

/** Encodes the points as the API requires: in a coordinate of the extension field, the imaginary part comes first. */
function encodeCircomProof({ pi_a: a, pi_b: b, pi_c: c }: CircomProof) {
  return {
    a: encodeCoordinates(a[0], a[1]),
    b: encodeCoordinates(b[0]?.[1], b[0]?.[0], b[1]?.[1], b[1]?.[0]),
    c: encodeCoordinates(c[0], c[1]),
  };
}

function encodeCoordinates(...decimals: readonly (string | undefined)[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(32 * decimals.length);
  decimals.forEach((decimal, index) => {
    if (decimal === undefined || !/^\d{1,78}$/.test(decimal)) {
      throw new TypeError("A proof's coordinates must be decimal numbers, as circom's tools write them.");
    }
    let rest = BigInt(decimal);
    for (let i = 31; i >= 0; i--, rest >>= 8n) {
      bytes[32 * index + i] = Number(rest & 0xffn);
    }
  });
  return bytes;
}
