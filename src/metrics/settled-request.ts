import type { Outcome } from "../rpc/errors.js";

/** An answered request. */
export interface SettledRequest {
  readonly protocol: string;
  /** `package.Service/Method`; undefined where none was asked for. */
  readonly rpc: string | undefined;
  readonly code: Outcome;
  readonly latencyMs: number;
  readonly isStream: boolean;
}
