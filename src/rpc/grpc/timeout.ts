const unitsMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** The longest time that a timer takes. */
const maxMs = 2 ** 31 - 1;

/** A grpc-timeout, one to eight digits and a unit, in milliseconds; undefined when it is none. */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return digits === undefined ? undefined : Math.min(Number(digits) * unitsMs[unit!]!, maxMs);
}
