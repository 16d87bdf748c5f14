/**
 * What stands in the state tree: keys of the things that decide what is valid next, and the hashes of their values. The
 * fields of a document are a tree of the same kind. For both ends: the node, and whoever checks what it was told.
 */
import { hashBytes, type TreeHashes } from "./hashes.js";

const utf8 = new TextEncoder();

/** Kinds of keys: the word keeps apart what is named alike. */
export type KeyTag = "program" | "nullifier" | "sender" | "commitments" | "field";

/** What stands for nothing where a hash is asked for. */
export const nothing: Uint8Array = new Uint8Array(32);

/** The parts of a storage program. */
export interface ProgramParts {
  /** Keeps others from guessing what a program holds by its hash. */
  readonly blinding: Uint8Array;
  /** An encoded ProgramRecord. */
  readonly record: Uint8Array;
  /** Hash of the metadata's text; {@link nothing} where there is none. */
  readonly metadataHash: Uint8Array;
  /** {@link nothing} where the program holds nothing. */
  readonly documentHash: Uint8Array;
}

/** An object: its fields, and what their order and the space between them are proved with. */
export interface ObjectParts {
  readonly fieldsRoot: Uint8Array;
  /** Key of the last field; {@link nothing} without fields. */
  readonly lastKey: Uint8Array;
  /** Hash of the text after the last value. */
  readonly tailHash: Uint8Array;
}

/** A field of an object. */
export interface FieldParts {
  /** Text between the value before it, or the begin of the document, and its own. */
  readonly before: string;
  /** Key of the field before it; {@link nothing} for the first one. */
  readonly previousKey: Uint8Array;
  /** As it was written. */
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

/** Bytes of the text of a field, up to which it is written in one place. */
const shortField = 4_096;

export function createStateHashes({ sha256, ofText }: TreeHashes) {
  const keyOf = (tag: KeyTag, name: Uint8Array): Uint8Array => sha256(join(tags[tag], name));
  const keyOfText = (tag: KeyTag, name: string): Uint8Array => ofText(`${tag}\0${name}`);
  const place = new Uint8Array(4 + shortField + hashBytes);
  const view = new DataView(place.buffer);
  return {
    /** @param address `stor-` and 40 hex digits. */
    programKey: (address: string) => keyOfText("program", address),
    /** @param nullifier 32 bytes. */
    nullifierKey: (nullifier: Uint8Array) => keyOf("nullifier", nullifier),
    /** @param publicKey 32 bytes. */
    senderKey: (publicKey: Uint8Array) => keyOf("sender", publicKey),
    commitmentsKey: () => keyOf("commitments", new Uint8Array()),
    /** @param name as JSON text, with its quotes: every name has one, also one that UTF-8 cannot write. */
    fieldKey: (name: string) => keyOfText("field", name),

    program: ({ blinding, record, metadataHash, documentHash }: ProgramParts) =>
      sha256(join(blinding, sha256(record), metadataHash, documentHash)),
    /** @param transactionHash 32 bytes. */
    nullifier: (blockNumber: bigint, transactionHash: Uint8Array) => sha256(join(uint64(blockNumber), transactionHash)),
    sender: (nonce: bigint) => sha256(uint64(nonce)),
    /** @param root 32 bytes. */
    commitments: (root: Uint8Array, leafCount: number) => sha256(join(root, uint64(BigInt(leafCount)))),

    /** A text: metadata, or what follows the last value of an object. */
    text: ofText,
    /** A document that is no object: its JSON text, of a binary one the JSON string of base64. */
    plainDocument: (text: string) => ofText(`\0${text}`),
    objectDocument: ({ fieldsRoot, lastKey, tailHash }: ObjectParts) =>
      sha256(join(Uint8Array.of(1), fieldsRoot, lastKey, tailHash)),
    field({ before, previousKey, value }: FieldParts) {
      // A document has thousands of them. No text has more than three bytes for each of its units.
      if (3 * (before.length + value.length) <= shortField && previousKey.length === hashBytes) {
        const { written } = utf8.encodeInto(before, place.subarray(4));
        view.setUint32(0, written);
        place.set(previousKey, 4 + written);
        const valueAt = 4 + written + hashBytes;
        const end = valueAt + utf8.encodeInto(value, place.subarray(valueAt)).written;
        return sha256(place.subarray(0, end));
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

/** Eight bytes, the highest first. */
function uint64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value);
  return bytes;
}

/** Four bytes, the highest first. */
function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}
