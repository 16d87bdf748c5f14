/** Shows the results of a search for a number, hash, address, key or name. */
import type { SearchResponse, SearchResult } from "../responses.js";
import { h } from "../dom.js";
import { withQuery } from "../node.js";
import { link, note, table } from "../parts.js";
import { linkTo, type Route } from "../routes.js";
import type { View, ViewContext } from "../view.js";
import { short } from "../format.js";

/** Shows the results. A single result opens immediately, and replaces the search in the history of the browser. */
export async function viewSearch({ node, signal }: ViewContext, text: string): Promise<View> {
  const { results } = await node.fetchJson<SearchResponse>(withQuery("search", { q: text }), signal);
  const known = results.map(namedResult).filter((result) => result !== undefined);
  if (known.length === 1) {
    location.replace(linkTo(known[0]!.route));
  }
  return {
    title: `Search: ${text}`,
    contents:
      known.length === 0
        ? [
            h("p", {}, "No results that your key may read."),
            note(
              "Numbers, hashes, addresses and keys must be complete; program names may be partial. Private programs are found only with a key that may read them: sign in.",
            ),
          ]
        : [
            table(
              "Results",
              ["Name", "Kind"],
              known.map(({ kind, name, route }) => [link(route, name), kind]),
            ).element,
          ],
  };
}

/** Result with its name and the route of its view. */
export interface NamedResult {
  readonly kind: string;
  readonly name: string;
  readonly route: Route;
}

/** Returns the name and the route of a result; undefined for a kind that this page does not know. */
export function namedResult({
  block,
  transaction,
  identity,
  commitment,
  nullifier,
  program,
}: SearchResult): NamedResult | undefined {
  if (block !== undefined) {
    const name = String(block.number);
    return { kind: "block", name: `Block ${name}`, route: { kind: "block", name } };
  }
  if (transaction !== undefined) {
    const { hash, status } = transaction;
    return { kind: `transaction, ${status}`, name: short(hash), route: { kind: "transaction", hash } };
  }
  if (identity !== undefined) {
    const { address } = identity;
    return { kind: "key", name: short(address), route: { kind: "owner", key: address } };
  }
  if (commitment !== undefined) {
    const { commitment: name, leafIndex } = commitment;
    return { kind: `commitment, leaf ${leafIndex}`, name: short(name), route: { kind: "tree", commitment: name } };
  }
  if (nullifier !== undefined) {
    const { nullifierHash: hash } = nullifier;
    return { kind: "spent nullifier", name: short(hash), route: { kind: "nullifier", hash } };
  }
  return (
    program && {
      kind: `program of ${short(program.owner)}`,
      name: program.programName,
      route: { kind: "program", address: program.storageAddress },
    }
  );
}
