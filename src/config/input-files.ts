/** Readers of the files that options name: genesis, peers and writers. Errors are one sentence with file and problem. */
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { hex32 } from "../base/crypto/hash.js";
import { isStrongKey } from "../base/crypto/key-validation.js";
import { errorMessage } from "../base/errors/error-message.js";
import { InputError } from "../base/errors/start-error.js";
import { parseJsonText, toPlainJson } from "../base/text/parse-json.js";
import { decodeUtf8 } from "../base/text/utf8.js";

const maxGenesisBytes = 16 * 1024 * 1024;

/** Reads a genesis file of at most 16 MiB; undefined if none is named. The chain parses the text. Throws InputError. */
export async function readGenesisFile(
  path: string | undefined,
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  if (path === undefined) {
    return undefined;
  }
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > maxGenesisBytes) {
      throw new Error(`it is larger than ${maxGenesisBytes} bytes`);
    }
    bytes = await readFile(path);
  } catch (error) {
    throw cannotRead(`The genesis file ${path}`, error);
  }
  const text = decodeUtf8(bytes);
  if (text === undefined || text.includes("\0")) {
    throw new InputError(`The genesis file ${path} is not UTF-8 text.`);
  }
  parseInput(`The genesis file ${path}`, text);
  return { path, text };
}

export interface PeerFileEntry {
  /** https://host:port of the peer's internal port; http if the network does not use TLS. */
  readonly url: string;
  /** Public key that the peer must prove: 0x and 64 lowercase hex digits. */
  readonly identity?: string | undefined;
}

const peer = z.strictObject({
  url: z.string().regex(/^https?:\/\/(\[[0-9a-fA-F:.]+\]|[^/:?#@\s]+):\d{1,5}$/),
  identity: z.string().regex(hex32).refine(isStrongKey).optional(),
});

/** Reads a peers file. The last of several entries with one URL counts. Throws InputError. */
export async function readPeersFile(path: string): Promise<PeerFileEntry[]> {
  const format = '{"url": "https://host:port", "identity": "0x<64 hex digits>"}, identity optional';
  const entries = await readListFile(path, "peers file", peer, format);
  return [...new Map(entries.map((entry) => [entry.url, entry])).values()];
}

/** Reads a writers file: a JSON array of public keys. Throws InputError. */
export async function readWritersFile(path: string): Promise<readonly string[]> {
  const format = "keys, 0x and 64 lower-case hex digits each";
  return await readListFile(path, "writers file", z.string().regex(hex32), format);
}

/** Parses JSON. Throws InputError with the subject, also for two members of one name, of which either could be meant. */
function parseInput(subject: string, text: string | undefined): unknown {
  if (text === undefined) {
    throw new InputError(`${subject} is not UTF-8 text.`);
  }
  try {
    return toPlainJson(parseJsonText(text));
  } catch (error) {
    throw new InputError(`${subject} ${errorMessage(error)}.`);
  }
}

/** Returns the error for a file that cannot be read, with advice if its mode is the cause. */
function cannotRead(subject: string, error: unknown): InputError {
  const isDenied = (error as NodeJS.ErrnoException).code === "EACCES";
  const remedy = isDenied ? "; make it readable by the user of the node, such as with chmod 644" : "";
  return new InputError(`${subject} cannot be read: ${errorMessage(error)}${remedy}.`);
}

async function readListFile<T>(path: string, name: string, item: z.ZodType<T>, format: string): Promise<T[]> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw cannotRead(`The ${name} ${path}`, error);
  });
  const { error, data } = z.array(item).safeParse(parseInput(`The ${name} ${path}`, decodeUtf8(bytes)));
  if (data === undefined) {
    const entry = error.issues[0]?.path.join(".") ?? "";
    const hint = entry === "" ? "" : `; check entry ${entry}`;
    throw new InputError(`The ${name} ${path} must hold a JSON array of ${format}${hint}.`);
  }
  return data;
}
