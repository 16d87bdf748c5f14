/** The certificate of the public port and its key, from their files. */
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { TlsCredentials } from "../base/certificate.js";
import type { Config } from "./config.js";
import { messageOf } from "../base/message-of.js";
import { StartError } from "../base/start-error.js";

/**
 * The certificate of the public port; undefined for cleartext.
 *
 * @throws StartError when the files do not hold one and its key.
 */
export async function readTlsFiles({
  tlsCertFile,
  tlsKeyFile,
}: Pick<Config, "tlsCertFile" | "tlsKeyFile">): Promise<TlsCredentials | undefined> {
  if (tlsCertFile === undefined && tlsKeyFile === undefined) {
    return undefined;
  }
  if (tlsCertFile === undefined || tlsKeyFile === undefined) {
    throw new StartError("--tls-cert and --tls-key must be given together.");
  }
  try {
    const [cert, key] = await Promise.all([readFile(tlsCertFile, "utf8"), readFile(tlsKeyFile, "utf8")]);
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    throw new StartError(
      `--tls-cert ${tlsCertFile} and --tls-key ${tlsKeyFile} are not a certificate and its key: ${messageOf(error)}.`,
    );
  }
}
