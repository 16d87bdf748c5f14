/** What is told of each request once it has ended: metrics, traces, a line of the access log. */
import type { Outcome } from "../rpc/errors.js";
import type { Arrival } from "../rpc/gate.js";
import type { ServedMethod } from "../rpc/service.js";
import { type AccessLine, createAccessLog } from "./access-log.js";
import type { Entered } from "./lease.js";

export interface TellingParts {
  readonly onSettled?: ((request: Omit<AccessLine, "address">, arrival: Arrival) => void) | undefined;
  readonly onAccess: (line: AccessLine) => void;
}

/** Tells how a request ended. */
export type Tell = (entered: Entered, code: Outcome, endMs: number) => void;

/** Most lines of the access log in a second. */
const accessLinesPerSecond = 20;
/** Of those who left before their answer, fewer: it is what attacks are made of. */
const cancelledLinesPerSecond = 1;

export function createTelling({ onSettled, onAccess }: TellingParts): Tell {
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
    onSettled?.(describe(), arrival);
    (code === "CANCELLED" ? logCancelled : logAnswered)(() => ({ ...describe(), address }));
  };
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
