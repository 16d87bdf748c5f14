/** What a caller says of how the answer that it wants may be compressed (RFC 9110, 12.5.3). */

/** Those that pages are served in, the smallest first. */
const codings = ["br", "gzip", "identity"] as const;

export type Coding = (typeof codings)[number];

/** The best coding that `Accept-Encoding` allows: of those that are liked as much, the smallest. As it is, where it is not sent. */
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
  // Who does not name it takes a page as it is all the same, after everything that he names.
  const weigh = (coding: Coding): number =>
    weights.get(coding) ?? weights.get("*") ?? (coding === "identity" ? Number.MIN_VALUE : 0);
  const [best = "identity"] = codings.filter((coding) => weigh(coding) > 0).sort((a, b) => weigh(b) - weigh(a));
  return best;
}
