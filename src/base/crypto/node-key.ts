/** The node's identity: an Ed25519 key in the data directory, created at the first start. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createCertificate, type TlsCredentials } from "./certificate.js";
import { writeNewFile } from "../files/private-files.js";
import { InputError } from "../errors/start-error.js";

export interface NodeKey {
  /** Public key as 0x and 64 lower-case hex digits. */
  readonly publicKey: string;
  /** Returns the Ed25519 signature of the bytes, 64 bytes long. */
  sign(bytes: Uint8Array): Buffer;
  /** Returns the credentials for TLS, which signs by itself. No other method exposes the private key. */
  tlsCredentials(): TlsCredentials;
}

export function nodeKeyPath(dataDir: string): string {
  return join(dataDir, "identity.key");
}

/**
 * Loads the node's key, or creates one. Processes that start at the same time all get the same key.
 *
 * @throws InputError with one sentence if the file is not an Ed25519 key, or if other users can read it.
 * @throws Error with one sentence if the key cannot be created.
 */
export async function loadOrCreateNodeKey(dataDir: string): Promise<NodeKey> {
  const path = nodeKeyPath(dataDir);
  if (!existsSync(path)) {
    try {
      return await createNodeKey(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        throw new Error(`The key ${path} cannot be created: ${(error as Error).message}`);
      }
    }
  }
  return await loadNodeKey(path);
}

/**
 * Creates a key and writes it to a new file (PKCS #8 PEM, readable only by its owner).
 *
 * @throws the system error; EEXIST if the file exists, because a key is never overwritten.
 */
export async function createNodeKey(path: string): Promise<NodeKey> {
  const { privateKey } = generateKeyPairSync("ed25519");
  await writeNewFile(path, privateKey.export({ type: "pkcs8", format: "pem" }));
  return toNodeKey(privateKey);
}

/** First line of an encrypted key (PKCS #8). */
const encryptedStart = "-----BEGIN ENCRYPTED PRIVATE KEY-----";

/**
 * Loads an existing key.
 *
 * @param askPassphrase returns the passphrase of an encrypted key. Without it, the key must not be encrypted.
 * @throws InputError with one sentence if the file is missing, is not an Ed25519 key, or can be read by other users; or
 * if it is encrypted, and the passphrase is missing or wrong.
 */
export async function loadNodeKey(path: string, askPassphrase?: () => Promise<string>): Promise<NodeKey> {
  const { mode } = await stat(path).catch(() => {
    throw new InputError(`There is no key at ${path}; create one with: gatehouse keygen --out ${path}`);
  });
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    throw new InputError(`The key ${path} can be read by others than its owner; run: chmod 600 ${path}`);
  }
  let key: KeyObject;
  let isEncrypted = false;
  try {
    const text = await readFile(path, "latin1");
    isEncrypted = text.includes(encryptedStart);
    // Pages that encrypt keys use the same Unicode form.
    const passphrase = isEncrypted ? (await askPassphrase?.())?.normalize("NFKC") : undefined;
    key = createPrivateKey({ key: text, ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    if (error instanceof InputError) {
      throw error;
    }
    if (isEncrypted) {
      throw new InputError(
        askPassphrase === undefined
          ? `The key ${path} is encrypted, and a node cannot ask for its passphrase; decrypt it with: openssl pkey -in ${path} -out FILE`
          : `The passphrase of the key ${path} is wrong, or the file is damaged.`,
      );
    }
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "EACCES" || code === "EISDIR" ? ` (${code})` : "";
    throw new InputError(`The key ${path} is not a readable private key in PEM form${why}; restore it from a backup.`);
  }
  if (key.asymmetricKeyType !== "ed25519") {
    throw new InputError(`The key ${path} is a ${key.asymmetricKeyType ?? "secret"} key; a node needs an Ed25519 key.`);
  }
  return toNodeKey(key);
}

function toNodeKey(privateKey: KeyObject): NodeKey {
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  return {
    publicKey: `0x${Buffer.from(x ?? "", "base64url").toString("hex")}`,
    sign: (bytes) => sign(null, bytes, privateKey),
    tlsCredentials: () => createCertificate(privateKey),
  };
}
