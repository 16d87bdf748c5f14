/**
 * Description of a TLS certificate that a client rejects. Node.js reports a code; browsers report none, so that there
 * nothing is recognized.
 */

/** A rejected certificate: clauses that follow "is not trusted: " and a semicolon. */
export interface CertificateProblem {
  readonly code: string;
  readonly found: string;
  readonly remedy: string;
}

/** Remedies by kind. `trust` names the setting that adds trusted certificates. */
const remedies = {
  self: (trust: string) => `if you know that it is the node's own, give it with ${trust}`,
  authority: (trust: string) => `give the certificate of that authority with ${trust}`,
  chain: (trust: string) =>
    `make the server send its intermediate certificates, or give the certificate of its authority with ${trust}`,
  expired: () => "renew it, or set the clock of this machine if that is wrong",
  early: () => "set the clock of this machine if that is wrong, or wait",
  name: () => "use a name that it has, or issue it again with this name in its subjectAltName",
  other: () => "issue it again, or use another authority",
} as const;

const untrusted: Readonly<Record<string, readonly [found: string, remedy: keyof typeof remedies]>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ["it is self-signed", "self"],
  SELF_SIGNED_CERT_IN_CHAIN: ["this machine does not know the authority that issued it", "authority"],
  UNABLE_TO_GET_ISSUER_CERT: ["the certificate of its issuer is missing", "chain"],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ["the certificate of its issuer is missing", "chain"],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ["the certificate of its issuer is missing", "chain"],
  CERT_HAS_EXPIRED: ["it, or a certificate of its issuers, has expired", "expired"],
  CERT_NOT_YET_VALID: ["it is not valid yet", "early"],
  ERR_TLS_CERT_ALTNAME_INVALID: ["it is for another name", "name"],
  ...Object.fromEntries(
    [
      ...["CERT_CHAIN_TOO_LONG", "CERT_REJECTED", "CERT_REVOKED", "CERT_SIGNATURE_FAILURE", "CERT_UNTRUSTED"],
      ...["INVALID_CA", "INVALID_PURPOSE", "PATH_LENGTH_EXCEEDED"],
    ].map((code) => [code, ["it is unusable", "other"]] as const),
  ),
};

/** Limit on the length of a chain of causes, which may be a cycle. */
const maxCauses = 8;

/**
 * Describes a rejected certificate, also if it is the cause of the error.
 *
 * @param trust Setting with which the caller adds trusted certificates.
 * @returns undefined for any other error.
 */
export function certificateProblem(error: unknown, trust: string): CertificateProblem | undefined {
  let current = error;
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth++) {
    const { code = "", reason, message } = current as Error & { readonly code?: string; readonly reason?: string };
    const known = Object.hasOwn(untrusted, code) ? untrusted[code] : undefined;
    if (known !== undefined) {
      const [found, kind] = known;
      // The reason has the names of the certificate.
      const detail = kind === "name" ? (reason ?? message) : kind === "other" ? message : "";
      const suffix = detail === "" ? "" : ` (${detail.replace(/[.:\s]+$/, "")})`;
      return { code, found: `${found}${suffix}`, remedy: remedies[kind](trust) };
    }
    current = current.cause;
  }
  return undefined;
}

/** Returns a sentence about the rejected certificate of a server; undefined for any other error. */
export function describeCertificateError(server: string, error: unknown, trust: string): string | undefined {
  const problem = certificateProblem(error, trust);
  return problem && `The certificate of ${server} is not trusted: ${problem.found}; ${problem.remedy}.`;
}
