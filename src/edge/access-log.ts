/** One log line for each answered request, up to so many a second; how many were left out is told with the next. */
import type { Outcome } from "../rpc/errors.js";
import type { Protocol } from "../rpc/gate.js";

/** An answered request. */
export interface AccessLine {
  readonly requestId: string;
  readonly protocol: Protocol;
  /** Full name of the rpc; undefined where the request named none that exists. */
  readonly rpc: string | undefined;
  readonly address: string;
  readonly code: Outcome;
  readonly latencyMs: number;
  /** Requests that were answered since the line before and got no line. */
  readonly unlogged?: number;
}

/** Writes lines. `line` is only asked for when it is written. */
export type AccessLog = (line: () => AccessLine) => void;

export function createAccessLog(write: (line: AccessLine) => void, perSecond: number, nowMs: () => number): AccessLog {
  let second = 0;
  let written = 0;
  let unlogged = 0;
  return (line) => {
    const now = Math.floor(nowMs() / 1000);
    if (now !== second) {
      second = now;
      written = 0;
    }
    if (written >= perSecond) {
      unlogged++;
      return;
    }
    written++;
    write(unlogged === 0 ? line() : { ...line(), unlogged });
    unlogged = 0;
  };
}
