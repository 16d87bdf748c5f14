/** Reports finished requests to metrics, traces and the access log. */
import type { Outcome } from "../rpc/errors.js";
import type { Arrival } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import { type AccessLine, createAccessLog } from "./access-log.js";
import type { AdmittedRequest } from "./request-permit.js";

export interface FinishedRequest extends Omit<AccessLine, "address"> {
  /** True for a stream. Its latency means nothing, since the client decides how long it stays open. */
  readonly isStream: boolean;
}

export interface RequestReporterDeps {
  readonly onFinished?: ((request: FinishedRequest, arrival: Arrival) => void) | undefined;
  readonly onAccess: (line: AccessLine) => void;
}

/** Reports the outcome of a request. */
export type ReportRequest = (admitted: AdmittedRequest, code: Outcome, endMs: number) => void;

/** Limit on lines of the access log per second. */
const accessLinesPerSecond = 20;
/** Limit on lines for canceled requests per second. It is lower, because attacks consist of them. */
const cancelledLinesPerSecond = 1;

export function createRequestReporter({ onFinished, onAccess }: RequestReporterDeps): ReportRequest {
  const logFinished = createAccessLog(onAccess, accessLinesPerSecond, Date.now);
  const logCancelled = createAccessLog(onAccess, cancelledLinesPerSecond, Date.now);
  return (admitted, code, endMs) => {
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

/** Returns true if calls of this method are streams in either direction. */
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
