/** What the node finds by a number, a hash, an address, a key or a name. */
import type { SearchAnswer, SearchResult } from "../answers.js";
import { h } from "../dom.js";
import { withQuery } from "../node.js";
import { link, note, table } from "../parts.js";
import { linkTo, type Route } from "../routes.js";
import type { Looking, View } from "../view.js";

/** What is found alone is shown at once, and the search is none of the places that one comes back to. */
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
            h("p", {}, "Nothing that you may see."),
            note(
              "A number, hash, address or key is found whole; a program by a part of its name. Private programs are found by those who may read them, once they have signed in.",
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

interface Found {
  readonly what: string;
  readonly name: string;
  readonly route: Route;
}

function foundOf(_result: SearchResult): Found | undefined {
  return undefined;
}
