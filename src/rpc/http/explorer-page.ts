/** Explorer page for the content of the network. */
import { createPage } from "./assets.js";
import type { Pages } from "./pages.js";

/** Creates the page, which loads its data through the API. */
export function createExplorerPages(): Pages {
  return {
    "/explore": createPage({
      html: "explore.html",
      styles: ["uplot.css", "explore.css", "views.css", "cards.css"],
      scripts: ["explore.js"],
      // Users type a key into this page. Block the conversion of text to markup.
      policy: "require-trusted-types-for 'script'; trusted-types 'none'",
    }),
  };
}
