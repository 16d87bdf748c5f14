/** Shows text from a caller in an error message. */

const maxShown = 80;

/**
 * Returns the text in quotes, shortened. Escapes characters that are invisible or change how other text is displayed.
 */
export function showText(text: string): string {
  const shortened = text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
  return JSON.stringify(shortened).replaceAll(
    /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}
