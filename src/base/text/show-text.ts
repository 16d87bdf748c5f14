/** Shows a text of a caller in an error message. */

/** The most characters that are shown. */
const maxShown = 80;

/** Returns the text in quotes, shortened, with escapes for what would not be seen, or would change how the rest is seen. */
export function showText(text: string): string {
  const shown = text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
  return JSON.stringify(shown).replaceAll(
    /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}
