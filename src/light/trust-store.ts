/** Trust store of a light node: a directory with the latest header seen and with evidence of forks, for later runs. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { SignedHeader } from "../../client/src/proof/proof-error.js";
import { sha256 } from "../base/crypto/hash.js";
import { ensurePrivateDirectory, privateFileMode } from "../base/files/private-files.js";
import { readFailureOf } from "../base/errors/read-failure.js";
import { InputError, StartError } from "../base/errors/start-error.js";
import { decodeBase64 } from "../base/text/base64.js";
import { readInteger } from "../base/text/integers.js";

export type TrustStore = Awaited<ReturnType<typeof openTrustStore>>;

/**
 * Opens the trust store. Creates the directory if it does not exist.
 *
 * @throws InputError if the directory belongs to another network or is corrupt, StartError if it cannot be used.
 */
export async function openTrustStore(dir: string, genesisHash: string) {
  await ensurePrivateDirectory(dir).catch((error: unknown) => {
    throw new StartError(`The directory ${dir} cannot be used: ${(error as Error).message}`);
  });
  const path = join(dir, "head.json");
  const seen = existsSync(path) ? readHead(path, genesisHash) : undefined;
  let evidence = readdirSync(dir)
    .filter((name) => /^fork-.*\.json$/.test(name))
    .map((name) => join(dir, name));
  return {
    /** Latest header of earlier runs. */
    seen,
    /** Stores a later header. After it returns, no restart accepts an older state. */
    storeSeen(header: SignedHeader): void {
      writeAtomically(path, { genesisHash, ...toBody(header) });
    },
    /** Stores two headers with the same number as evidence of a fork. */
    storeEvidence(headers: readonly [SignedHeader, SignedHeader]): void {
      const [{ number, hash }] = headers;
      const file = join(dir, `fork-${number}-${hash.slice(2, 10)}.json`);
      writeAtomically(file, { genesisHash, headers: headers.map(toBody) });
      evidence.push(file);
    },
    /** Returns the path of an evidence file; undefined if there is none, or the operator has removed it. */
    evidence(): string | undefined {
      evidence = evidence.filter(existsSync);
      return evidence[0];
    },
  };
}

function readHead(path: string, genesisHash: string): SignedHeader {
  const { genesisHash: stored, ...head } = parse(path);
  if (stored !== genesisHash) {
    throw new InputError(`The directory belongs to the network ${stored}: give another --data-dir for ${genesisHash}.`);
  }
  return head;
}

function parse(path: string): SignedHeader & { readonly genesisHash: string } {
  try {
    const { hash, genesisHash, ...body } = JSON.parse(readFileSync(path, "utf8")) as ReturnType<typeof toBody> & {
      readonly genesisHash: string;
    };
    const number = readInteger(body.number);
    const [header, signature] = [body.header, body.signature].map(decodeBase64);
    if (number !== undefined && header !== undefined && signature !== undefined && sha256(header) === hash) {
      return { number, hash, header, signature, genesisHash };
    }
  } catch (error) {
    const failure = readFailureOf(error);
    if (failure !== undefined) {
      throw new StartError(`The file ${path} cannot be read (${failure}); check its disk.`);
    }
    // Text that is not JSON is reported like other wrong content.
  }
  throw new InputError(
    `The file ${path} is corrupt. Remove it; the light node then accepts blocks older than those it has seen.`,
  );
}

/** Returns a header in the JSON of the files, with bytes in base64. */
function toBody({ number, hash, header, signature }: SignedHeader) {
  const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
  return { number: String(number), hash, header: toBase64(header), signature: toBase64(signature) };
}

/** Replaces a file atomically. The content is on disk when the function returns. */
function writeAtomically(path: string, body: object): void {
  const draft = `${path}.draft`;
  const file = openSync(draft, "w", privateFileMode);
  try {
    writeFileSync(file, `${JSON.stringify(body)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
}
