/** Reader of input files and stdin, with a size limit, and writer of files that commands save. */
import { createReadStream } from "node:fs";
import { stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError } from "../../base/errors/start-error.js";
import { decodeUtf8 } from "../../base/text/utf8.js";

/**
 * Reads a complete file.
 *
 * @param path Path of the file; `-` is stdin.
 * @throws InputError if the file cannot be read or is larger than `maxBytes`.
 */
export async function readInput(path: string, maxBytes: number): Promise<Buffer> {
  const isStdin = path === "-";
  try {
    const size = isStdin ? 0 : (await stat(path)).size;
    // Pipes and devices report no size, so check the limit while reading as well.
    const bytes =
      size > maxBytes ? undefined : await collect(isStdin ? process.stdin : createReadStream(path), maxBytes);
    if (bytes === undefined) {
      const input = isStdin ? "The input on stdin" : `The file ${path}`;
      const actual = size > maxBytes ? ` It has ${size}.` : "";
      throw new InputError(`${input} must not be larger than ${maxBytes} bytes.${actual}`);
    }
    return bytes;
  } catch (error) {
    throw error instanceof InputError
      ? error
      : new InputError(`The file ${path} cannot be read: ${(error as Error).message}.`);
  }
}

/**
 * Reads a complete file of text.
 *
 * @throws InputError as {@link readInput} does, and if the file is not UTF-8.
 */
export async function readTextInput(path: string, maxBytes: number): Promise<string> {
  const text = decodeUtf8(await readInput(path, maxBytes));
  if (text === undefined) {
    throw new InputError(
      `${path === "-" ? "The input on stdin" : `The file ${path}`} is not UTF-8 text; convert it first.`,
    );
  }
  return text;
}

/** Returns all bytes of a stream; undefined once they exceed the limit. */
export async function collect(stream: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      return undefined;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Writes a file and replaces an existing one. Creates the directory if it does not exist. Throws InputError if the file
 * cannot be written.
 */
export async function writeOutput(path: string, text: string): Promise<void> {
  // Loaded lazily, since its cryptography takes 1 MB that requests to a node do not need.
  const { createPrivateDirectory, privateFileMode } = await import("../../base/files/private-files.js");
  try {
    await createPrivateDirectory(dirname(path));
    await writeFile(path, text, { mode: privateFileMode });
  } catch (error) {
    throw new InputError(`${path} cannot be written: ${(error as Error).message}.`);
  }
}
