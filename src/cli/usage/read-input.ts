/** Reading what commands are given in files and on stdin, within bounds. */
import type { ReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { ExitError, exitCodes } from "./errors.js";

/**
 * Reads a file whole.
 *
 * @param path `-` is stdin.
 * @param maxBytes a larger one is refused by its size, before any of it is read; stdin, as soon as it is.
 * @throws ExitError with code 2 when it cannot be read, or is larger.
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
    // A pipe or a device has no size that could be asked.
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
  const what = path === "-" ? "What comes on stdin" : `The file ${path}`;
  const is = size === undefined ? "" : ` It has ${size}.`;
  return new ExitError(`${what} must not be larger than ${maxBytes} bytes.${is}`, exitCodes.usage);
}
