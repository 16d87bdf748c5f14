/** Negotiation of the content coding of responses (RFC 9110, section 12.5.3). */

/** Content codings of pages, the most compact first. */
const codings = ["br", "gzip", "identity"] as const;

export type Coding = (typeof codings)[number];

/**
 * Returns the coding with the highest weight in `Accept-Encoding`; the most compact among equals. Without the header:
 * identity.
 */
export function codingFor(accepted: string | undefined): Coding {
  if (accepted === undefined) {
    return "identity";
  }
  const weights = new Map<string, number>();
  for (const item of accepted.toLowerCase().split(",")) {
    const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
    weights.set(name === "x-gzip" ? "gzip" : name, Number(weight) || 0);
  }
  // Identity is acceptable even if not listed, as the last choice.
  const weightOf = (coding: Coding): number =>
    weights.get(coding) ?? weights.get("*") ?? (coding === "identity" ? Number.MIN_VALUE : 0);
  const [best = "identity"] = codings
    .filter((coding) => weightOf(coding) > 0)
    .sort((a, b) => weightOf(b) - weightOf(a));
  return best;
}
