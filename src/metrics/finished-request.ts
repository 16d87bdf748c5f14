import type { Outcome } from "../rpc/errors.js";

/** Finished request. */
export interface FinishedRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined if the request named no rpc. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
  readonly isStream: boolean;
}
