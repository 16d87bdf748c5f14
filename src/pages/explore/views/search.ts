/** Shows the results for a number, a hash, an address, a key or a name. */
import type { SearchAnswer, SearchResult } from "../answers.js";
import { h } from "../dom.js";
import { withQuery } from "../node.js";
import { link, note, table } from "../parts.js";
import { linkTo, type Route } from "../routes.js";
import type { Looking, View } from "../view.js";
import { short } from "../words.js";

/** Shows the results. A single result opens at once and replaces the search in the history. */
export async function viewSearch({ node, signal }: Looking, text: string): Promise<View> {
  const { results } = await node.ask<SearchAnswer>(withQuery("search", { q: text }), signal);
  const found = results.map(foundOf).filter((one) => one !== undefined);
  if (found.length === 1) {
    location.replace(linkTo(found[0]!.route));
  }
  return {
    title: `Search: ${text}`,
    contents:
      found.length === 0
        ? [
            h("p", {}, "Nothing that your key may read."),
            note(
              "Numbers, hashes, addresses and keys must be complete; program names may be partial. Private programs are found only with a key that may read them: sign in.",
            ),
          ]
        : [
            table(
              "Found",
              ["Name", "What"],
              found.map(({ what, name, route }) => [link(route, name), what]),
            ).element,
          ],
  };
}

/** Result with the view that shows it. */
export interface Found {
  readonly what: string;
  readonly name: string;
  readonly route: Route;
}

/** Returns the view of a result; undefined for a kind that is newer than this page. */
export function foundOf({
  block,
  transaction,
  identity,
  commitment,
  nullifier,
  program,
}: SearchResult): Found | undefined {
  if (block !== undefined) {
    const name = String(block.number);
    return { what: "block", name: `Block ${name}`, route: { kind: "block", name } };
  }
  if (transaction !== undefined) {
    const { hash, status } = transaction;
    return { what: `transaction, ${status}`, name: short(hash), route: { kind: "transaction", hash } };
  }
  if (identity !== undefined) {
    const { address } = identity;
    return { what: "key", name: short(address), route: { kind: "owner", key: address } };
  }
  if (commitment !== undefined) {
    const { commitment: name, leafIndex } = commitment;
    return { what: `commitment, leaf ${leafIndex}`, name: short(name), route: { kind: "tree", commitment: name } };
  }
  if (nullifier !== undefined) {
    const { nullifierHash: hash } = nullifier;
    return { what: "spent nullifier", name: short(hash), route: { kind: "nullifier", hash } };
  }
  return (
    program && {
      what: `program of ${short(program.owner)}`,
      name: program.programName,
      route: { kind: "program", address: program.storageAddress },
    }
  );
}
