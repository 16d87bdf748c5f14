/** Returns the first line of a thrown value, at most 500 characters. */
export function errorMessage(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0]!.slice(0, 500);
}
