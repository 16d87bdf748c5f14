/** What a light node keeps over restarts, in its directory: the newest header it has seen, and evidence of forks. */
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
import { claimDirectory, privateFileMode } from "../base/files/private-files.js";
import { InputError, StartError } from "../base/errors/start-error.js";

/** The directory, as it is now. */
export interface TrustStore {
  /** The newest header of earlier runs. */
  readonly seen: SignedHeader | undefined;
  /** Keeps a newer one. When it returns, no restart goes back behind it. */
  keepSeen(header: SignedHeader): void;
  /** Keeps two headers of one number. */
  keepEvidence(headers: readonly [SignedHeader, SignedHeader]): void;
  /** A file of evidence that is there; undefined where there is none, or its operator has taken it away. */
  evidence(): string | undefined;
}

/** A header as it is in the files: bytes are base64. */
interface HeaderBody {
  readonly number: string;
  readonly hash: string;
  readonly header: string;
  readonly signature: string;
}

/**
 * Opens the directory; it is made where there is none.
 *
 * @throws InputError when it is that of another network, StartError when it cannot be used.
 */
export async function openTrustStore(dir: string, genesisHash: string): Promise<TrustStore> {
  await claimDirectory(dir).catch((error: unknown) => {
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
    keepSeen: (header) => writeWhole(path, { genesisHash, ...toBody(header) }),
    keepEvidence(headers) {
      const [{ number, hash }] = headers;
      const file = join(dir, `fork-${number}-${hash.slice(2, 10)}.json`);
      writeWhole(file, { genesisHash, headers: headers.map(toBody) });
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
      `The directory is that of the network ${body.genesisHash}: name another one with --data-dir for ${genesisHash}.`,
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
    // As one that says nothing.
  }
  throw new InputError(
    `The file ${path} is not what was written there. Remove it, and older blocks than those seen before are believed again.`,
  );
}

function toBody({ number, hash, header, signature }: SignedHeader): HeaderBody {
  const [text, signed] = [header, signature].map((bytes) => Buffer.from(bytes).toString("base64"));
  return { number: String(number), hash, header: text!, signature: signed! };
}

/** Whole or not at all, and on the disk when it returns. */
function writeWhole(path: string, body: object): void {
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
