/**
 * Comments of the contract. Generated code omits comments, so they are read from the compiled descriptor set. A node
 * without this file works, but its API descriptions are shorter.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { errorMessage } from "../../base/errors/error-message.js";

const descriptorSet = new URL("../../../../gen/contract.binpb", import.meta.url);

type Kind = "file" | "message" | "enum" | "service" | "leaf";

/** Members of descriptors by their field numbers in descriptor.proto, of which the path of a comment consists. */
const members: Readonly<Record<Kind, Readonly<Record<number, readonly [member: string, Kind]>>>> = {
  file: { 4: ["messageType", "message"], 5: ["enumType", "enum"], 6: ["service", "service"] },
  message: { 2: ["field", "leaf"], 3: ["nestedType", "message"], 4: ["enumType", "enum"] },
  enum: { 2: ["value", "leaf"] },
  service: { 2: ["method", "leaf"] },
  leaf: {},
};

let loaded: ReadonlyMap<string, string> | undefined;

/**
 * Returns the comment of a full name, such as `gatehouse.info.v1.Peer.identity`; empty if there is none. Loads the
 * comments on the first call.
 */
export function commentOf(fullName: string): string {
  return (loaded ??= loadComments()).get(fullName) ?? "";
}

/**
 * Returns the reason why the comments cannot be loaded; undefined if they can. Checks only the structure of the file,
 * and leaves decoding for later.
 */
export function commentError(): string | undefined {
  try {
    const reader = new BinaryReader(readFileSync(descriptorSet));
    do {
      const [number, type] = reader.tag();
      if (number !== FileDescriptorSetSchema.field.file.number) {
        throw new Error(`${fileURLToPath(descriptorSet)} is not a descriptor set of the contract.`);
      }
      reader.skip(type, number);
    } while (reader.pos < reader.len);
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

function loadComments(): ReadonlyMap<string, string> {
  try {
    const { file: files } = fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSet));
    return new Map(
      files.flatMap((file) =>
        (file.sourceCodeInfo?.location ?? []).flatMap(({ path, leadingComments: comment }) => {
          const name = comment === "" ? undefined : nameAt(file, path);
          return name === undefined ? [] : [[name, joinLines(comment)] as const];
        }),
      ),
    );
  } catch {
    return new Map();
  }
}

/** Returns the full name of the element at a path of member numbers and indices; undefined if it has no name. */
function nameAt(file: FileDescriptorProto, path: readonly number[]): string | undefined {
  let element: object = file;
  let kind: Kind = "file";
  let name = file.package;
  for (let i = 0; i < path.length; i += 2) {
    const member: readonly [string, Kind] | undefined = members[kind][path[i]!];
    if (member === undefined) {
      return undefined;
    }
    const list = (element as Readonly<Record<string, readonly { readonly name: string }[]>>)[member[0]]!;
    element = list[path[i + 1]!]!;
    kind = member[1];
    name += `.${(element as { readonly name: string }).name}`;
  }
  return path.length === 0 ? undefined : name;
}

/** Returns a comment as the member `description` of a document; no member without a comment. */
export function described(comment: string): { readonly description?: string } {
  return comment === "" ? {} : { description: comment };
}

/** Returns the first sentence of a comment without its period, as a title for lists. */
export function summaryOf(comment: string): string | undefined {
  return /^.*?(?=\.(\s|$))/s.exec(comment)?.[0];
}

/** Joins the lines of each paragraph. */
function joinLines(text: string): string {
  return text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s*\n\s*/g, " ").trim())
    .join("\n\n")
    .trim();
}
