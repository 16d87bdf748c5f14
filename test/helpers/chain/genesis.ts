/** The genesis of a test. */
import type { TestKey } from "./keys.js";

/** Returns the text of a genesis with these authorities. */
export function genesisOf(...keys: readonly TestKey[]): string {
  return JSON.stringify({ name: "test", authorities: keys.map(({ publicKey }) => publicKey) });
}
