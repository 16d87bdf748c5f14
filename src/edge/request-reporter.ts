/**
 * Reports finished requests to metrics, traces and the access log. The log has one line per request, limited per
 * second. The next line states how many were left out.
 */
import type { Outcome } from "../rpc/errors.js";
import type { Arrival, Protocol } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";

export type ReportedArrival = Pick<Arrival, "requestId" | "connection" | "header">;

/** Request that is reported when it ends. */
export interface ReportedRequest {
  readonly arrival: ReportedArrival;
  readonly address: string;
  readonly protocol: Protocol;
  method: ServedMethod | undefined;
  /** Start time on the clock of `performance.now()`. */
  readonly startMs: number;
}

export interface AdmittedRequest extends ReportedRequest {
  readonly arrival: Arrival;
}

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

export interface FinishedRequest extends Omit<AccessLine, "address"> {
  /** True for a stream. Its latency means nothing, since the client decides how long it stays open. */
  readonly isStream: boolean;
}

/** Limit on lines of the access log per second. */
const accessLinesPerSecond = 20;
/** Limit on lines for canceled requests per second. It is lower, because attacks consist of them. */
const cancelledLinesPerSecond = 1;

export function createRequestReporter({
  onFinished,
  onAccess,
}: {
  readonly onFinished?: ((request: FinishedRequest, arrival: ReportedArrival) => void) | undefined;
  readonly onAccess: (line: AccessLine) => void;
}) {
  const logFinished = limitLines(onAccess, accessLinesPerSecond);
  const logCancelled = limitLines(onAccess, cancelledLinesPerSecond);
  return (admitted: ReportedRequest, code: Outcome, endMs: number): void => {
    const { arrival, address, protocol, startMs } = admitted;
    const describe = (): Omit<AccessLine, "address"> => ({
      requestId: arrival.requestId,
      protocol,
      rpc: admitted.method && rpcName(admitted.method),
      code,
      latencyMs: Math.round((endMs - startMs) * 1000) / 1000,
    });
    onFinished?.({ ...describe(), isStream: isStream(admitted.method) }, arrival);
    (code === "CANCELLED" ? logCancelled : logFinished)(() => ({ ...describe(), address }));
  };
}

function limitLines(write: (line: AccessLine) => void, perSecond: number): (line: () => AccessLine) => void {
  let second = 0;
  let written = 0;
  let unlogged = 0;
  return (line) => {
    const now = Math.floor(Date.now() / 1000);
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

export function isStream(method: ServedMethod | undefined): boolean {
  return method !== undefined && method.desc.methodKind !== "unary";
}

const rpcNames = new WeakMap<ServedMethod, string>();

/** Returns `package.Service/Method`, cached by method. */
function rpcName(method: ServedMethod): string {
  let name = rpcNames.get(method);
  if (name === undefined) {
    name = `${method.desc.parent.typeName}/${method.desc.name}`;
    rpcNames.set(method, name);
  }
  return name;
}
