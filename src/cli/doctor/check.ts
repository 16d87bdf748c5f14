/** What `gatehouse doctor` finds. */
import { errorMessage } from "../../base/errors/error-message.js";

/** One thing that was looked at. */
export interface DoctorCheck {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  /** One sentence. */
  readonly found: string;
  /** What to do; missing where nothing is. */
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

/** What is found where looking itself fails. */
export async function attempt(name: string, remedy: string, look: () => Promise<DoctorCheck>): Promise<DoctorCheck> {
  try {
    return await look();
  } catch (error) {
    const sentence = errorMessage(error);
    return fail(name, /[.!?]$/.test(sentence) ? sentence : `${sentence}.`, remedy);
  }
}
