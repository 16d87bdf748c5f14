/** Suggestions for misspelled option names. */
import { closestMatch } from "leven";

/**
 * Returns the end of an error message, with the option closest to an unknown name; empty if no name is close. At most a
 * quarter of the characters, rounded up, may differ.
 */
export function suggest<O extends { readonly name: string }>(
  unknownName: string,
  options: readonly O[],
  show: (option: O) => string,
): string {
  const names = options.map(({ name }) => name);
  const nearest = closestMatch(unknownName.toLowerCase(), names, { maxDistance: Math.ceil(unknownName.length / 4) });
  const option = options.find(({ name }) => name === nearest);
  return option === undefined ? "" : `; did you mean ${show(option)}`;
}
