/**
 * Values that never change, at any depth. They alone may stand for what was made of them: the text or the bytes that an
 * encoder wrote for such a value are right for as long as there is this value. To be frozen is not enough for that,
 * since what a frozen value holds may change.
 */

/** Those that were handed to {@link makeImmutable}, without their parts, which are too many to be told apart. */
const immutables = new WeakSet<object>();

/**
 * Freezes a value with everything in it, and gives it back. A part that was made immutable before is not looked at
 * again, so what shares most of its parts with an older value costs little.
 *
 * @throws TypeError when there are bytes, a Map, a Set or a Date in it: those change although they are frozen.
 */
export function makeImmutable<T extends object>(value: T): T {
  freezeAll(value);
  immutables.add(value);
  return value;
}

/** Whether a value went through {@link makeImmutable}. */
export function isImmutable(value: unknown): boolean {
  return immutables.has(value as object);
}

function freezeAll(value: object): void {
  if (immutables.has(value)) {
    return;
  }
  if (ArrayBuffer.isView(value) || value instanceof Map || value instanceof Set || value instanceof Date) {
    throw new TypeError(`A ${value.constructor.name} cannot be made immutable.`);
  }
  Object.freeze(value);
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === "object" && part !== null) {
      freezeAll(part);
    }
  }
}
