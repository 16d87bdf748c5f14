/** Results of `gatehouse doctor`. */
import type { Config } from "../../config/config.js";
import { fallbackOf } from "../../config/declare.js";
import { optionsByKey } from "../../config/options.js";
import { errorMessage } from "../../base/errors/error-message.js";

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

/** Returns the flag with which a command on this machine reaches the control service of the node. */
export function controlFlagOf({ dataDir, controlSocket }: Pick<Config, "dataDir" | "controlSocket">): string {
  return controlSocket === fallbackOf(optionsByKey.controlSocket, () => dataDir)
    ? `--data-dir ${dataDir}`
    : `--control ${controlSocket}`;
}

/** Runs a check, and converts an error of the check into a failed result. */
export async function attempt(name: string, remedy: string, run: () => Promise<DoctorCheck>): Promise<DoctorCheck> {
  try {
    return await run();
  } catch (error) {
    const message = errorMessage(error);
    return resultsOf(name).fail(/[.!?]$/.test(message) ? message : `${message}.`, remedy);
  }
}
