/** The certificate of the public port and its key, from their files. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { TlsCredentials } from "../base/crypto/certificate.js";
import { errorMessage } from "../base/errors/error-message.js";
import { InputError } from "../base/errors/start-error.js";
import { ConfigError } from "./config-error.js";
import type { Config } from "./config.js";

/** Where they are. */
export interface TlsPaths {
  readonly cert: string;
  readonly key: string;
}

/** What the files hold: the certificate is the first of the chain. */
export interface TlsFiles {
  readonly credentials: TlsCredentials;
  readonly certificate: X509Certificate;
}

/**
 * The files do not hold a certificate and its key. The message says which option is at fault, and leaves the path to
 * `file`, since the node serves the messages of its log.
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
 * Where the files are; undefined for cleartext.
 *
 * @throws ConfigError when one of the two is not given.
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
 * Reads the files as they are now.
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
  // What is left to be wrong: the rest of the chain, and a key that TLS finds too weak.
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

function unlessWrong<T>(make: () => T, wrong: (why: string) => Error): T {
  try {
    return make();
  } catch (error) {
    throw wrong(errorMessage(error));
  }
}
