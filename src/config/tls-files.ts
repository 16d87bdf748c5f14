/** Reader of the certificate and key files of the public port. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { TlsCredentials } from "../base/crypto/certificate.js";
import { errorMessage } from "../base/errors/error-message.js";
import { InputError } from "../base/errors/start-error.js";
import type { Config } from "./config.js";
import { ConfigError } from "./declare.js";

export type TlsPaths = Readonly<Record<"cert" | "key", string>>;

/** Contents of the files. `certificate` is the first of the chain. */
export interface TlsFiles {
  readonly credentials: TlsCredentials;
  readonly certificate: X509Certificate;
}

/**
 * Error for files that do not hold a certificate and its key. The message names the option but not the path, since the
 * node serves its log messages to clients. `file` holds the path.
 */
export class TlsFilesError extends InputError {
  override readonly name = "TlsFilesError";

  constructor(
    message: string,
    readonly file: string,
  ) {
    super(message);
  }
}

/** Returns the paths of the files; undefined for cleartext. Throws ConfigError if only one of the two is given. */
export function tlsPaths({
  tlsCertFile,
  tlsKeyFile,
}: Pick<Config, "tlsCertFile" | "tlsKeyFile">): TlsPaths | undefined {
  if (tlsCertFile === undefined && tlsKeyFile === undefined) {
    return undefined;
  }
  if (tlsCertFile === undefined || tlsKeyFile === undefined) {
    throw new ConfigError("--tls-cert and --tls-key must be given together.");
  }
  return { cert: tlsCertFile, key: tlsKeyFile };
}

/** Reads the current content of the files. Throws TlsFilesError. */
export async function readTlsFiles(paths: TlsPaths): Promise<TlsFiles> {
  const [cert, key] = await Promise.all([read("--tls-cert", paths.cert), read("--tls-key", paths.key)]);
  const certificate = attempt("--tls-cert holds no certificate", paths.cert, () => new X509Certificate(cert));
  const privateKey = attempt("--tls-key holds no private key", paths.key, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFilesError("--tls-key is not the key of the first certificate in --tls-cert", paths.key);
  }
  // Check the rest of the chain, and keys that TLS rejects as too weak.
  attempt("--tls-cert cannot be used", paths.cert, () => createSecureContext({ cert, key }));
  return { credentials: { cert, key }, certificate };
}

async function read(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new TlsFilesError(`${(error as NodeJS.ErrnoException).code ?? "error"}: ${option} cannot be read`, path);
  }
}

/** Returns the created value. Replaces an error by TlsFilesError with the problem and the reason. */
function attempt<T>(problem: string, file: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw new TlsFilesError(`${problem} (${errorMessage(error)})`, file);
  }
}
