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
import { InputError, StartError } from "../base/errors/start-error.js";

/** Contents of the directory. */
export interface TrustStore {
  /** Latest header of earlier runs. */
  readonly seen: SignedHeader | undefined;
  /** Stores a later header. After it returns, no restart accepts an older state. */
  storeSeen(header: SignedHeader): void;
  /** Stores two headers with the same number as evidence of a fork. */
  storeEvidence(headers: readonly [SignedHeader, SignedHeader]): void;
  /** Returns the path of an evidence file; undefined if there is none, or the operator has removed it. */
  evidence(): string | undefined;
}

/** Header in the JSON of the files, with bytes in base64. */
interface HeaderBody {
  readonly number: string;
  readonly hash: string;
  readonly header: string;
  readonly signature: string;
}

/**
 * Opens the trust store. Creates the directory if it does not exist.
 *
 * @throws InputError if the directory belongs to another network or is corrupt, StartError if it cannot be used.
 */
export async function openTrustStore(dir: string, genesisHash: string): Promise<TrustStore> {
  await ensurePrivateDirectory(dir).catch((error: unknown) => {
    throw new StartError(`The directory ${dir} cannot be used: ${(error as Error).message}`);
  });
  const path = join(dir, "head.json");
  const seen = existsSync(path) ? readHead(path, genesisHash) : undefined;
  const evidence = new Set(
    readdirSync(dir)
      .filter((name) => /^fork-.*\.json$/.test(name))
      .map((name) => join(dir, name)),
  );
  return {
    seen,
    storeSeen: (header) => writeAtomically(path, { genesisHash, ...toBody(header) }),
    storeEvidence(headers) {
      const [{ number, hash }] = headers;
      const file = join(dir, `fork-${number}-${hash.slice(2, 10)}.json`);
      writeAtomically(file, { genesisHash, headers: headers.map(toBody) });
      evidence.add(file);
    },
    evidence() {
      for (const file of evidence) {
        if (existsSync(file)) {
          return file;
        }
        evidence.delete(file);
      }
      return undefined;
    },
  };
}

function readHead(path: string, genesisHash: string): SignedHeader {
  const body = parse(path);
  if (body.genesisHash !== genesisHash) {
    throw new InputError(
      `The directory belongs to the network ${body.genesisHash}: give another --data-dir for ${genesisHash}.`,
    );
  }
  return {
    number: BigInt(body.number),
    hash: body.hash,
    header: Buffer.from(body.header, "base64"),
    signature: Buffer.from(body.signature, "base64"),
  };
}

function parse(path: string): HeaderBody & { readonly genesisHash: string } {
  try {
    const body = JSON.parse(readFileSync(path, "utf8")) as HeaderBody & { readonly genesisHash: string };
    if (sha256(Buffer.from(body.header, "base64")) === body.hash && /^\d+$/.test(body.number)) {
      return body;
    }
  } catch {
    // Handle an unreadable file like one with wrong content.
  }
  throw new InputError(
    `The file ${path} is corrupt. Remove it; the light node then accepts blocks older than those it has seen.`,
  );
}

function toBody({ number, hash, header, signature }: SignedHeader): HeaderBody {
  const [headerText, signatureText] = [header, signature].map((bytes) => Buffer.from(bytes).toString("base64"));
  return { number: String(number), hash, header: headerText!, signature: signatureText! };
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
