const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Limit on the delay of a timer, in milliseconds. */
const maxMs = 2 ** 31 - 1;

/** Parses a grpc-timeout, one to eight digits and a unit, to milliseconds; undefined if malformed. */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits) * unitsMs[unit!]!, maxMs);
}
