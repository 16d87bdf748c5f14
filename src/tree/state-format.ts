/**
 * Format of the state tree: keys of everything that decides if the next transactions are valid, and the hashes of their
 * values. The fields of a document form a tree of the same kind. The node and verifying clients share this module.
 */
import { hashBytes, type TreeHashes } from "./hashes.js";

const utf8 = new TextEncoder();

/** Kinds of keys. The kind is hashed into the key, so that equal names of different kinds get different keys. */
export type KeyTag = "program" | "nullifier" | "sender" | "commitments" | "field";

/** Placeholder of 32 zero bytes where a hash is required but no value exists. */
export const zeroHash: Uint8Array = new Uint8Array(32);

/** Parts that the hash of a storage program covers. */
export interface ProgramParts {
  /** Random bytes that prevent guessing the contents of a program from its hash. */
  readonly blinding: Uint8Array;
  /** Encoded ProgramRecord. */
  readonly record: Uint8Array;
  /** Hash of the metadata text; {@link zeroHash} if there is no metadata. */
  readonly metadataHash: Uint8Array;
  /** Hash of the document; {@link zeroHash} if the program has no document. */
  readonly documentHash: Uint8Array;
}

/** Parts that the hash of a JSON object covers: its fields, and proof of their order and of the text between them. */
export interface ObjectParts {
  readonly fieldsRoot: Uint8Array;
  /** Key of the last field; {@link zeroHash} if there are no fields. */
  readonly lastKey: Uint8Array;
  /** Hash of the text after the last value. */
  readonly tailHash: Uint8Array;
}

/** Parts that the hash of an object's field covers. */
export interface FieldParts {
  /** Text between the previous value, or the start of the document, and this value. */
  readonly before: string;
  /** Key of the previous field; {@link zeroHash} for the first field. */
  readonly previousKey: Uint8Array;
  /** JSON text of the value, exactly as the document contains it. */
  readonly value: string;
}

export type StateHashes = ReturnType<typeof createStateHashes>;

const tags: Readonly<Record<KeyTag, Uint8Array>> = {
  program: utf8.encode("program\0"),
  nullifier: utf8.encode("nullifier\0"),
  sender: utf8.encode("sender\0"),
  commitments: utf8.encode("commitments\0"),
  field: utf8.encode("field\0"),
};

/** Size limit in bytes of a field's texts that are encoded into one reused buffer. */
const shortField = 4_096;

export function createStateHashes({ sha256, ofText }: TreeHashes) {
  const keyOf = (tag: KeyTag, name: Uint8Array): Uint8Array => sha256(join(tags[tag], name));
  const keyOfText = (tag: KeyTag, name: string): Uint8Array => ofText(`${tag}\0${name}`);
  // Short fields are encoded into this buffer, which saves an allocation for each.
  const scratch = new Uint8Array(4 + shortField + hashBytes);
  const view = new DataView(scratch.buffer);
  return {
    /** @param address `stor-` and 40 hex digits. */
    programKey: (address: string) => keyOfText("program", address),
    /** @param nullifier 32 bytes. */
    nullifierKey: (nullifier: Uint8Array) => keyOf("nullifier", nullifier),
    /** @param publicKey 32 bytes. */
    senderKey: (publicKey: Uint8Array) => keyOf("sender", publicKey),
    commitmentsKey: () => keyOf("commitments", new Uint8Array()),
    /**
     * @param name JSON text with its quotes, so that names with lone surrogates, which UTF-8 cannot encode, have a key
     * too.
     */
    fieldKey: (name: string) => keyOfText("field", name),

    program: ({ blinding, record, metadataHash, documentHash }: ProgramParts) =>
      sha256(join(blinding, sha256(record), metadataHash, documentHash)),
    /** @param transactionHash 32 bytes. */
    nullifier: (blockNumber: bigint, transactionHash: Uint8Array) => sha256(join(uint64(blockNumber), transactionHash)),
    sender: (nonce: bigint) => sha256(uint64(nonce)),
    /** @param root 32 bytes. */
    commitments: (root: Uint8Array, leafCount: number) => sha256(join(root, uint64(BigInt(leafCount)))),

    /** Hashes a text: metadata, or the text after the last value of an object. */
    text: ofText,
    /**
     * Hashes a document that is not an object: its JSON text, or the JSON string of the base64 of a binary document.
     */
    plainDocument: (text: string) => ofText(`\0${text}`),
    objectDocument: ({ fieldsRoot, lastKey, tailHash }: ObjectParts) =>
      sha256(join(Uint8Array.of(1), fieldsRoot, lastKey, tailHash)),
    field({ before, previousKey, value }: FieldParts) {
      // UTF-8 needs at most three bytes for each UTF-16 code unit.
      if (3 * (before.length + value.length) <= shortField && previousKey.length === hashBytes) {
        const { written } = utf8.encodeInto(before, scratch.subarray(4));
        view.setUint32(0, written);
        scratch.set(previousKey, 4 + written);
        const valueAt = 4 + written + hashBytes;
        const end = valueAt + utf8.encodeInto(value, scratch.subarray(valueAt)).written;
        return sha256(scratch.subarray(0, end));
      }
      const text = utf8.encode(before);
      return sha256(join(uint32(text.length), text, previousKey, utf8.encode(value)));
    },
  };
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Encodes a number as 8 bytes, big-endian. */
function uint64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value);
  return bytes;
}

/** Encodes a number as 4 bytes, big-endian. */
function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}
