/** What `gatehouse doctor` finds. */
import { messageOf } from "../../base/errors/error-message.js";

/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  /** One sentence. */
  readonly found: string;
  /** What to do; missing where nothing is. */
  readonly remedy?: string;
}

export const ok = (name: string, found: string): Check => ({ name, status: "ok", found });
export const skip = (name: string, found: string): Check => ({ name, status: "skip", found });
export const warn = (name: string, found: string, remedy: string): Check => ({ name, status: "warn", found, remedy });
export const fail = (name: string, found: string, remedy: string): Check => ({ name, status: "fail", found, remedy });

/** What is found where looking itself fails. */
export async function attempt(name: string, remedy: string, look: () => Promise<Check>): Promise<Check> {
  try {
    return await look();
  } catch (error) {
    const sentence = messageOf(error);
    return fail(name, /[.!?]$/.test(sentence) ? sentence : `${sentence}.`, remedy);
  }
}
