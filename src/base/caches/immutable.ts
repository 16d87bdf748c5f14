/**
 * Values that never change, at any depth. An encoding of such a value may be cached for as long as the value exists.
 * `Object.freeze` alone does not permit this, because the parts of a frozen value may still change.
 */

/** Values passed to {@link makeImmutable}. Their parts are not in the set, because they would be too many. */
const immutables = new WeakSet<object>();

/**
 * Freezes a value deeply and returns the same object. Skips parts that are immutable values themselves, so a value that
 * shares most of its parts with an older one costs little.
 *
 * @throws TypeError if the value contains bytes, a Map, a Set or a Date, since freezing does not protect their content.
 */
export function makeImmutable<T extends object>(value: T): T {
  freezeAll(value);
  immutables.add(value);
  return value;
}

/** Returns true if the value was passed to {@link makeImmutable}. */
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
