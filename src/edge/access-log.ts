/** Access log: one line per finished request, limited per second. The next line states how many were left out. */
import type { Outcome } from "../rpc/errors.js";
import type { Protocol } from "../rpc/gate.js";

/** Entry for a finished request. */
export interface AccessLine {
  readonly requestId: string;
  readonly protocol: Protocol;
  /** Full name of the rpc; undefined if the request named no existing rpc. */
  readonly rpc: string | undefined;
  readonly address: string;
  readonly code: Outcome;
  readonly latencyMs: number;
  /** Number of requests since the previous line that got no line. */
  readonly unlogged?: number;
}

/** Writes a line. Calls `line` only if the line is written. */
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
