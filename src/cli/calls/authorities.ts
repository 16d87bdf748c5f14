/**
 * Certificates that a command trusts in addition to those of Node.js: the file of `--ca`. One set for the process, as
 * with NODE_EXTRA_CA_CERTS, which adds to it as well.
 */
import { readFile } from "node:fs/promises";
import type { SecureContext } from "node:tls";
import { InputError } from "../../base/errors/start-error.js";
import { readEnvironment } from "../../config/variables.js";
import { readTextInput } from "../usage/files.js";

/** Flag that adds trusted certificates, for messages. */
export const trustFlag = "--ca FILE";

/** Limit on the size of a file in bytes, larger than a file of all public authorities (0.3 MB). */
const maxFileBytes = 4 * 1024 * 1024;

let context: (() => Promise<SecureContext>) | undefined;

/**
 * Adds the certificates of a file; undefined for none. Replaces those of an earlier call.
 *
 * @throws InputError if the file cannot be read, or has no certificate or a malformed one.
 */
export async function trustAuthorities(path: string | undefined): Promise<void> {
  const added = path === undefined ? undefined : await readCertificates(path);
  let created: Promise<SecureContext> | undefined;
  context = added && (() => (created ??= createContext(added)));
}

/** Returns the options with which every TLS connection of a command is opened: none, or all trusted certificates. */
export async function tlsTrust(): Promise<{ readonly secureContext?: SecureContext }> {
  return context === undefined ? {} : { secureContext: await context() };
}

async function readCertificates(path: string): Promise<string[]> {
  const text = await readTextInput(path, maxFileBytes);
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) {
    throw new InputError(
      `--ca ${path} has no certificate; give a file of certificates in PEM, which starts with -----BEGIN CERTIFICATE-----.`,
    );
  }
  const { X509Certificate } = await import("node:crypto");
  blocks.forEach((block, i) => {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw new InputError(
        `Certificate ${i + 1} of ${blocks.length} in --ca ${path} is malformed (${(error as Error).message}); copy it again from its authority.`,
      );
    }
  });
  return blocks;
}

async function createContext(added: readonly string[]): Promise<SecureContext> {
  const tls = await import("node:tls");
  // Node.js 20 lacks getCACertificates. There, read what it would return.
  const { getCACertificates } = tls as { readonly getCACertificates?: (type: "default") => readonly string[] };
  const known = getCACertificates?.("default") ?? [...tls.rootCertificates, ...(await extraCertificates())];
  return tls.createSecureContext({ ca: [...known, ...added] });
}

/** Returns the content of NODE_EXTRA_CA_CERTS. Node.js itself warns if the file cannot be read. */
async function extraCertificates(): Promise<string[]> {
  const path = readEnvironment()["NODE_EXTRA_CA_CERTS"] ?? "";
  return path === ""
    ? []
    : await readFile(path, "utf8").then(
        (text) => [text],
        () => [],
      );
}
