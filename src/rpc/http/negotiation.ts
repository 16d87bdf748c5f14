/** Negotiation of response formats by weighted lists in request headers (RFC 9110, section 12.5). */

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
  const weights = new Map(readList(accepted).map(({ name, weight }) => [name === "x-gzip" ? "gzip" : name, weight]));
  // Identity is acceptable even if not listed, as the last choice.
  const weightOf = (coding: Coding): number =>
    weights.get(coding) ?? weights.get("*") ?? (coding === "identity" ? Number.MIN_VALUE : 0);
  const [best = "identity"] = codings
    .filter((coding) => weightOf(coding) > 0)
    .sort((a, b) => weightOf(b) - weightOf(a));
  return best;
}

const jsonForm = /^(application|text)\/([\w.-]+\+)?json$/;

/**
 * Returns true if `Accept` names text/html before any JSON, as browsers do when they open an address. Wildcards name
 * neither: every other client sends them.
 */
export function prefersHtml(accept: string | undefined): boolean {
  const [best] = readList(accept ?? "")
    .filter(({ name, weight }) => (name === "text/html" ? weight > 0 : jsonForm.test(name)))
    .sort((a, b) => b.weight - a.weight);
  return best?.name === "text/html";
}

/**
 * Returns true if `Accept` gives lines of JSON a higher weight than server-sent events, or names them with an equal one.
 * A wildcard that includes both names neither.
 */
export function prefersLines(accept: string | undefined): boolean {
  const weights = new Map(readList(accept ?? "").map(({ name, weight }) => [name, weight]));
  const weightOf = (type: string): number =>
    weights.get(type) ?? weights.get(type.replace(/\/.*/, "/*")) ?? weights.get("*/*") ?? 0;
  const names = ["application/jsonl", "application/x-ndjson"];
  const weight = Math.max(...names.map(weightOf));
  const eventWeight = weightOf("text/event-stream");
  return weight > eventWeight || (weight > 0 && weight === eventWeight && names.some((name) => weights.has(name)));
}

const weightForm = /^(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$/;

/** Reads the names and weights of a list, in its order. The default weight is 1; an invalid one counts as 0. */
function readList(header: string): { readonly name: string; readonly weight: number }[] {
  return header
    .toLowerCase()
    .split(",")
    .map((item) => {
      const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
      const weight = parameters.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
      return { name, weight: weightForm.test(weight) ? Number(weight) : 0 };
    });
}
