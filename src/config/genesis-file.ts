/** Reader of the --genesis file. */
import { readFile, stat } from "node:fs/promises";
import { InputError } from "../base/errors/start-error.js";

/** Genesis file and its unparsed text. */
export interface GenesisFile {
  readonly path: string;
  readonly text: string;
}

const maxBytes = 16 * 1024 * 1024;

/**
 * Reads a genesis file of at most 16 MiB; undefined if none is named. The chain parses the text.
 *
 * @throws InputError with one sentence that names the file and the problem.
 */
export async function readGenesisFile(path: string | undefined): Promise<GenesisFile | undefined> {
  if (path === undefined) {
    return undefined;
  }
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > maxBytes) {
      throw new Error(`it is larger than ${maxBytes} bytes`);
    }
    bytes = await readFile(path);
  } catch (error) {
    throw new InputError(`The genesis file ${path} cannot be read: ${(error as Error).message}.`);
  }
  const text = bytes.toString("utf8");
  if (!Buffer.from(text, "utf8").equals(bytes) || text.includes("\0")) {
    throw new InputError(`The genesis file ${path} is not UTF-8 text.`);
  }
  return { path, text };
}
