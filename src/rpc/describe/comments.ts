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

/** Returns the comment of a full name, such as `gatehouse.info.v1.Peer.identity`; empty if there is none. */
export type CommentOf = (fullName: string) => string;

const descriptorSet = new URL("../../../../gen/contract.binpb", import.meta.url);

/** Field numbers of descriptor.proto, from which the path of a comment is built. */
const fieldNumbers = { message: 4, enum: 5, service: 6, field: 2, nested: 3, nestedEnum: 4, value: 2, method: 2 };

let loaded: ReadonlyMap<string, string> | undefined;

/** Returns the comment of a full name. Loads the comments on the first call. */
export const commentOf: CommentOf = (fullName) => (loaded ??= loadComments()).get(fullName) ?? "";

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
  const comments = new Map<string, string>();
  try {
    for (const file of fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSet)).file) {
      readFile(file, comments);
    }
  } catch {
    comments.clear();
  }
  return comments;
}

function readFile(file: FileDescriptorProto, comments: Map<string, string>): void {
  const byPath = new Map(
    file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join("."), leadingComments]),
  );
  const addComment = (name: string, path: readonly number[]): void => {
    const text = byPath.get(path.join("."));
    if (text !== undefined && text !== "") {
      comments.set(name, joinLines(text));
    }
  };

  function readMessage(
    message: FileDescriptorProto["messageType"][number],
    scope: string,
    path: readonly number[],
  ): void {
    const name = `${scope}.${message.name}`;
    addComment(name, path);
    message.field.forEach((field, i) => addComment(`${name}.${field.name}`, [...path, fieldNumbers.field, i]));
    message.nestedType.forEach((nested, i) => readMessage(nested, name, [...path, fieldNumbers.nested, i]));
    message.enumType.forEach((nested, i) => readEnum(nested, name, [...path, fieldNumbers.nestedEnum, i]));
  }

  function readEnum(desc: FileDescriptorProto["enumType"][number], scope: string, path: readonly number[]): void {
    const name = `${scope}.${desc.name}`;
    addComment(name, path);
    desc.value.forEach((value, i) => addComment(`${name}.${value.name}`, [...path, fieldNumbers.value, i]));
  }

  file.messageType.forEach((message, i) => readMessage(message, file.package, [fieldNumbers.message, i]));
  file.enumType.forEach((desc, i) => readEnum(desc, file.package, [fieldNumbers.enum, i]));
  file.service.forEach((service, i) => {
    const name = `${file.package}.${service.name}`;
    addComment(name, [fieldNumbers.service, i]);
    service.method.forEach((method, k) =>
      addComment(`${name}.${method.name}`, [fieldNumbers.service, i, fieldNumbers.method, k]),
    );
  });
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
