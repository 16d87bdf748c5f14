/** Check of the validity period of a certificate. */
import type { X509Certificate } from "node:crypto";
import { describeExpiry } from "../../node/serving/tls.js";
import { type DoctorCheck, fail, ok, warn } from "./check.js";

/**
 * Checks the dates of a certificate.
 *
 * @param owner Owner of the certificate, as the end of "The certificate of".
 */
export function checkValidity(name: string, owner: string, certificate: X509Certificate, remedy: string): DoctorCheck {
  const nowMs = Date.now();
  const problem = describeExpiry(certificate, nowMs, owner);
  if (problem === undefined) {
    return ok(name, `It is valid until ${new Date(certificate.validTo).toISOString()}.`);
  }
  return nowMs > Date.parse(certificate.validTo) ? fail(name, problem, remedy) : warn(name, problem, remedy);
}
