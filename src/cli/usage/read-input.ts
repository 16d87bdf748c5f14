/** Reader for input from files and stdin, with a size limit. */
import type { ReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { ExitError, exitCodes } from "./errors.js";

/**
 * Reads a complete file.
 *
 * @param path Path of the file; `-` is stdin.
 * @param maxBytes Size limit. A file that is larger is rejected before it is read, and stdin once it exceeds the limit.
 * @throws ExitError with code 2 if the file cannot be read or is too large.
 */
export async function readInput(path: string, maxBytes: number): Promise<Buffer> {
  try {
    if (path === "-") {
      return await collect(process.stdin, path, maxBytes);
    }
    const file = await open(path);
    const { size } = await file.stat();
    if (size > maxBytes) {
      await file.close();
      throw tooLarge(path, maxBytes, size);
    }
    // Pipes and devices report no size, so check the limit while reading as well.
    return await collect(file.createReadStream(), path, maxBytes);
  } catch (error) {
    throw error instanceof ExitError
      ? error
      : new ExitError(`The file ${path} cannot be read: ${(error as Error).message}.`, exitCodes.usage);
  }
}

async function collect(stream: ReadStream | NodeJS.ReadStream, path: string, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw tooLarge(path, maxBytes);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(path: string, maxBytes: number, size?: number): ExitError {
  const input = path === "-" ? "The input on stdin" : `The file ${path}`;
  const actual = size === undefined ? "" : ` It has ${size}.`;
  return new ExitError(`${input} must not be larger than ${maxBytes} bytes.${actual}`, exitCodes.usage);
}
