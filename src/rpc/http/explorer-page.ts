/** The explorer: one document for whoever wonders what is in the network, which asks its own node alone. */
import { assetHash, inlined, readAssets } from "./assets.js";
import type { Pages } from "./pages.js";

/** The page. What it shows it asks the interface for. */
export function createExplorerPages(): Pages {
  const style = readAssets("common.css", "explore.css", "cards.css");
  const script = readAssets("explore.js");
  return {
    "/explore": {
      contentType: "text/html; charset=utf-8",
      policy: [
        `script-src ${assetHash(script)}`,
        `style-src ${assetHash(style)}`,
        "img-src data:",
        "connect-src 'self'",
        // A key is typed in here: no form can be sent anywhere, and no text can become markup.
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join("; "),
      load: () => inlined(readAssets("explore.html"), style, script),
    },
  };
}
