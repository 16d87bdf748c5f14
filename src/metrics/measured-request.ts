import type { Outcome } from "../rpc/errors.js";

/** Finished request, as metrics and traces record it. */
export interface MeasuredRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined if the request named no rpc. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
  readonly isStream: boolean;
}
