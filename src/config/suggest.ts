/** What somebody may have meant who named an option that is none. */
import { closestMatch } from "leven";

/**
 * Ends the sentence that refuses a name with the option that is nearest to it; empty where none is near. A quarter of
 * its letters, and one at least, may be wrong.
 */
export function suggest<O extends { readonly name: string }>(
  given: string,
  options: readonly O[],
  show: (option: O) => string,
): string {
  const names = options.map(({ name }) => name);
  const nearest = closestMatch(given.toLowerCase(), names, { maxDistance: Math.ceil(given.length / 4) });
  const option = options.find(({ name }) => name === nearest);
  return option === undefined ? "" : `; did you mean ${show(option)}`;
}
