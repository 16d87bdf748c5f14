/** Comparison with a part of a value. */
import type { ExecutionContext } from "ava";

/**
 * Asserts as `t.like` does, and that each list has the expected length. AVA compares only the items that are expected, so
 * a list may have more of them.
 */
export function likeLists(t: ExecutionContext, actual: unknown, expected: object, message?: string): void {
  t.like(actual as object, expected, message);
  t.deepEqual(lengthsIn(actual, expected), lengthsIn(expected, expected), message);
}

/** Returns the path and length of each list of a value where `pattern` has a list. */
function lengthsIn(value: unknown, pattern: unknown, path = ""): string[] {
  if (typeof pattern !== "object" || pattern === null) {
    return [];
  }
  const members = Object(value) as Readonly<Record<string, unknown>>;
  return [
    ...(Array.isArray(pattern) ? [`${path}: ${String(members["length"])}`] : []),
    ...Object.entries(pattern).flatMap(([name, item]) => lengthsIn(members[name], item, `${path}/${name}`)),
  ];
}
