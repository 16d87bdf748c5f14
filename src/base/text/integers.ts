/** Whole numbers in text. One grammar for paths, queries, headers, flags and files, and the one of ProtoJSON. */

/** Digits of the largest number of 64 bits. Longer text is not converted. */
const maxDigits = 20;

const integerForm = /^(?:0|-?[1-9][0-9]*)$/;

/**
 * Reads a whole number in its only spelling: decimal digits without leading zeros, after a minus sign if negative.
 *
 * @returns undefined for other text, and for more than 20 digits.
 */
export function readInteger(text: string): bigint | undefined {
  return text.length <= maxDigits + 1 && integerForm.test(text) ? BigInt(text) : undefined;
}

const decimalForm = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/**
 * Reads the text of a JSON number as a whole number, exactly. ProtoJSON accepts each spelling of a whole number: 100,
 * 100.0 and 1e2.
 *
 * @returns undefined for other text, for a number with a fraction, and for more than 20 digits.
 */
export function readDecimalInteger(text: string): bigint | undefined {
  const [, sign, whole, fraction = "", exponent = "0"] = decimalForm.exec(text) ?? [];
  if (whole === undefined) {
    return undefined;
  }
  const digits = whole + fraction;
  let start = 0;
  let end = digits.length;
  while (start < end && digits[start] === "0") {
    start++;
  }
  while (end > start && digits[end - 1] === "0") {
    end--;
  }
  if (start === end) {
    return 0n;
  }
  const zeros = whole.length + Number(exponent) - end;
  return zeros >= 0 && zeros + end - start <= maxDigits
    ? BigInt(`${sign}${digits.slice(start, end)}${"0".repeat(zeros)}`)
    : undefined;
}

/** Reads the text of a JSON number as a JavaScript number; undefined for other text, and beyond the range. */
export function readDecimal(text: string): number | undefined {
  const number = decimalForm.test(text) ? Number(text) : NaN;
  return Number.isFinite(number) ? number : undefined;
}
