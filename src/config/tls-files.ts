/** Reader of the certificate and key files of the public port. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { TlsCredentials } from "../base/crypto/certificate.js";
import { errorMessage } from "../base/errors/error-message.js";
import { InputError } from "../base/errors/start-error.js";
import { ConfigError } from "./config-error.js";
import type { Config } from "./config.js";

/** Paths of the certificate and the key. */
export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
}

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

/**
 * Returns the paths of the files; undefined for cleartext.
 *
 * @throws ConfigError if only one of the two is given.
 */
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

/**
 * Reads the current content of the files.
 *
 * @throws TlsFilesError
 */
export async function readTlsFiles(paths: TlsPaths): Promise<TlsFiles> {
  const [cert, key] = await Promise.all([read("--tls-cert", paths.cert), read("--tls-key", paths.key)]);
  const certificate = unlessWrong(
    () => new X509Certificate(cert),
    (why) => new TlsFilesError(`--tls-cert holds no certificate (${why})`, paths.cert),
  );
  const privateKey = unlessWrong(
    () => createPrivateKey(key),
    (why) => new TlsFilesError(`--tls-key holds no private key (${why})`, paths.key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsFilesError("--tls-key is not the key of the first certificate in --tls-cert", paths.key);
  }
  // Check the rest of the chain, and keys that TLS rejects as too weak.
  unlessWrong(
    () => createSecureContext({ cert, key }),
    (why) => new TlsFilesError(`--tls-cert cannot be used (${why})`, paths.cert),
  );
  return { credentials: { cert, key }, certificate };
}

async function read(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new TlsFilesError(`${(error as NodeJS.ErrnoException).code ?? "error"}: ${option} cannot be read`, path);
  }
}

function unlessWrong<T>(create: () => T, wrong: (why: string) => Error): T {
  try {
    return create();
  } catch (error) {
    throw wrong(errorMessage(error));
  }
}
