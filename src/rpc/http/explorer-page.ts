/** Explorer page for the content of the network. The page requests data only from its own node. */
import { assetHash, inlined, readAssets } from "./assets.js";
import type { Pages } from "./pages.js";

/** Creates the page, which loads its data through the API. */
export function createExplorerPages(): Pages {
  const style = readAssets("common.css", "explore.css", "views.css", "cards.css");
  const script = readAssets("explore.js");
  return {
    "/explore": {
      contentType: "text/html; charset=utf-8",
      policy: [
        `script-src ${assetHash(script)}`,
        `style-src ${assetHash(style)}`,
        "img-src data:",
        "connect-src 'self'",
        // Users type a key into this page. Block form submissions, and the conversion of text to markup.
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join("; "),
      load: () => inlined(readAssets("explore.html"), style, script),
    },
  };
}
