/** Negotiation of the media type at `/` (RFC 9110, section 12.5.1). */

const jsonForm = /^(application|text)\/([\w.-]+\+)?json$/;

/**
 * Returns true if `Accept` names text/html before any JSON, as browsers do when they open an address. Wildcards name
 * neither: every other client sends them.
 */
export function prefersHtml(accept: string | undefined): boolean {
  const types = (accept ?? "").toLowerCase().split(",").map(readRange);
  const html = types.findIndex(({ name, weight }) => name === "text/html" && weight > 0);
  return (
    html >= 0 &&
    !types.some(({ name, weight }, i) => {
      const { weight: htmlWeight } = types[html]!;
      return jsonForm.test(name) && (weight > htmlWeight || (weight === htmlWeight && i < html));
    })
  );
}

function readRange(item: string): { readonly name: string; readonly weight: number } {
  const [name = "", ...parameters] = item.split(";").map((part) => part.trim());
  const weight = parameters.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
  return { name, weight: Number(weight) || 0 };
}
