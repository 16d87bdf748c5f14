/** Results of `gatehouse doctor`. */
import { errorMessage } from "../../base/errors/error-message.js";

/** Result of one check. */
export interface DoctorCheck {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  /** Finding: one sentence. */
  readonly found: string;
  /** Advice to the operator; undefined if no action is necessary. */
  readonly remedy?: string;
}

export const ok = (name: string, found: string): DoctorCheck => ({ name, status: "ok", found });
export const skip = (name: string, found: string): DoctorCheck => ({ name, status: "skip", found });
export const warn = (name: string, found: string, remedy: string): DoctorCheck => ({
  name,
  status: "warn",
  found,
  remedy,
});
export const fail = (name: string, found: string, remedy: string): DoctorCheck => ({
  name,
  status: "fail",
  found,
  remedy,
});

/** Runs a check, and converts an error of the check into a failed result. */
export async function attempt(name: string, remedy: string, run: () => Promise<DoctorCheck>): Promise<DoctorCheck> {
  try {
    return await run();
  } catch (error) {
    const message = errorMessage(error);
    return fail(name, /[.!?]$/.test(message) ? message : `${message}.`, remedy);
  }
}
