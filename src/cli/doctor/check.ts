/** Results of `gatehouse doctor`. */
import type { X509Certificate } from "node:crypto";
import { errorMessage } from "../../base/errors/error-message.js";
import { describeExpiry } from "../../node/serving/tls.js";

export interface DoctorCheck {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly found: string;
  /** Advice to the operator; undefined if no action is necessary. */
  readonly remedy?: string;
}

export const resultsOf = (name: string) => ({
  ok: (found: string): DoctorCheck => ({ name, status: "ok", found }),
  skip: (found: string): DoctorCheck => ({ name, status: "skip", found }),
  warn: (found: string, remedy: string): DoctorCheck => ({ name, status: "warn", found, remedy }),
  fail: (found: string, remedy: string): DoctorCheck => ({ name, status: "fail", found, remedy }),
});

/** Runs a check, and converts an error of the check into a failed result. */
export async function attempt(name: string, remedy: string, run: () => Promise<DoctorCheck>): Promise<DoctorCheck> {
  try {
    return await run();
  } catch (error) {
    const message = errorMessage(error);
    return resultsOf(name).fail(/[.!?]$/.test(message) ? message : `${message}.`, remedy);
  }
}

/**
 * Checks the dates of a certificate.
 *
 * @param owner Owner of the certificate, as the end of "The certificate of".
 */
export function checkValidity(name: string, owner: string, certificate: X509Certificate, remedy: string): DoctorCheck {
  const { ok, warn, fail } = resultsOf(name);
  const nowMs = Date.now();
  const problem = describeExpiry(certificate, nowMs, owner);
  if (problem === undefined) {
    return ok(`It is valid until ${new Date(certificate.validTo).toISOString()}.`);
  }
  return nowMs > Date.parse(certificate.validTo) ? fail(problem, remedy) : warn(problem, remedy);
}
