/** Timeouts that clients set in headers. */
import type { Exchange } from "./exchange.js";

/** Limit on the delay of a timer, in milliseconds. Longer timeouts count as this one. */
const maxMs = 2 ** 31 - 1;

const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Parses a grpc-timeout, one to eight digits and a unit, to milliseconds; undefined if malformed. */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits) * unitsMs[unit!]!, maxMs);
}

/** Parses a connect-timeout-ms, one to ten digits, to milliseconds; undefined if malformed. */
export function parseConnectTimeout(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? Math.min(Number(text), maxMs) : undefined;
}

const parsers = { "grpc-timeout": parseGrpcTimeout, "connect-timeout-ms": parseConnectTimeout };

/** Returns the names of timeout headers that no timer can measure. The Connect library would end their calls at once. */
export function longTimeouts(exchange: Pick<Exchange, "header">): string[] {
  return Object.entries(parsers).flatMap(([name, parse]) =>
    parse(exchange.header(name) ?? "") === maxMs ? [name] : [],
  );
}
