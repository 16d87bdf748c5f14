/** Shows the results of a search for a number, hash, address, key or name. */
import type { SearchResponse, SearchResult } from "../responses.js";
import { h } from "../dom.js";
import { withQuery } from "../node.js";
import { link, note, table } from "../parts.js";
import { type ItemView, linkTo, type Route } from "../routes.js";
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
            h("p", {}, "No results."),
            note(
              "Numbers, hashes, addresses and keys must be complete; program names may be partial. What is not in a block yet, and programs that the reader may not read, are not found.",
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
export function namedResult(result: SearchResult): NamedResult | undefined {
  const { block, transaction, identity, commitment, nullifier, program } = result;
  const named = (kind: string, view: ItemView, item: string, name = short(item)): NamedResult => ({
    kind,
    name,
    route: { kind: view, name: item },
  });
  return (
    (block && named("block", "block", String(block.number), `Block ${block.number}`)) ??
    (transaction && named(`transaction, ${transaction.status}`, "transaction", transaction.hash)) ??
    (identity && named("key", "owner", identity.address)) ??
    (commitment && named(`commitment, leaf ${commitment.leafIndex}`, "tree", commitment.commitment)) ??
    (nullifier && named("spent nullifier", "nullifier", nullifier.nullifierHash)) ??
    (program && named(`program of ${short(program.owner)}`, "program", program.storageAddress, program.programName))
  );
}
