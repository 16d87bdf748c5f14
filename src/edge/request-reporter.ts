/** What is told of each request once it has ended: metrics, traces, a line of the access log. */
import type { Outcome } from "../rpc/errors.js";
import type { Arrival } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import { type AccessLine, createAccessLog } from "./access-log.js";
import type { Entered } from "./request-permit.js";

/** A request that has ended. */
export interface FinishedRequest extends Omit<AccessLine, "address"> {
  /** It was open for as long as its caller liked. */
  readonly isStream: boolean;
}

export interface TellingDeps {
  readonly onSettled?: ((request: FinishedRequest, arrival: Arrival) => void) | undefined;
  readonly onAccess: (line: AccessLine) => void;
}

/** Tells how a request ended. */
export type ReportRequest = (entered: Entered, code: Outcome, endMs: number) => void;

/** Most lines of the access log in a second. */
const accessLinesPerSecond = 20;
/** Of those who left before their answer, fewer: it is what attacks are made of. */
const cancelledLinesPerSecond = 1;

export function createRequestReporter({ onSettled, onAccess }: TellingDeps): ReportRequest {
  const logAnswered = createAccessLog(onAccess, accessLinesPerSecond, Date.now);
  const logCancelled = createAccessLog(onAccess, cancelledLinesPerSecond, Date.now);
  return (entered, code, endMs) => {
    const { arrival, address, protocol, startMs } = entered;
    const describe = (): Omit<AccessLine, "address"> => ({
      requestId: arrival.requestId,
      protocol,
      rpc: entered.method && rpcName(entered.method),
      code,
      latencyMs: Math.round((endMs - startMs) * 1000) / 1000,
    });
    onSettled?.({ ...describe(), isStream: isStream(entered.method) }, arrival);
    (code === "CANCELLED" ? logCancelled : logAnswered)(() => ({ ...describe(), address }));
  };
}

/** Whether calls of this method are streams, from either side. */
export function isStream(method: ServedMethod | undefined): boolean {
  return method !== undefined && method.desc.methodKind !== "unary";
}

const rpcNames = new WeakMap<ServedMethod, string>();

/** `package.Service/Method`, put together once. */
function rpcName(method: ServedMethod): string {
  let name = rpcNames.get(method);
  if (name === undefined) {
    name = `${method.desc.parent.typeName}/${method.desc.name}`;
    rpcNames.set(method, name);
  }
  return name;
}
