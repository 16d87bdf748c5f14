/** Tells a file that cannot be read from one that is missing or has wrong content. */

/** Returns the error code of the system for a file that exists but cannot be read; undefined for any other error. */
export function readFailureOf(error: unknown): string | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined || code === "ENOENT" || code === "ENOTDIR" ? undefined : code;
}
