/** Status page for operators. The page runs only its own script and requests data only from its own node. */
import { assetHash, inlined, readAssets } from "./assets.js";
import type { Pages } from "./pages.js";

/** Data of the page that is not part of the API. */
export interface StatusPageData {
  readonly history: { count(): number; columns(): object };
  /** Interval between points of the history, in milliseconds. */
  readonly everyMs: number;
  /** Name of the database. */
  readonly database: string;
}

/** Creates the page and its data document. The data format changes with the page, and is not part of the API. */
export function createStatusPages({ history, everyMs, database }: StatusPageData): Pages {
  const style = readAssets("common.css", "status.css", "cards.css");
  const script = readAssets("status-words.js", "status-plots.js", "status.js");
  return {
    "/status": {
      contentType: "text/html; charset=utf-8",
      policy: `script-src ${assetHash(script)}; style-src ${assetHash(style)}; img-src data:; connect-src 'self'`,
      load: () => inlined(readAssets("status.html"), style, script),
    },
    "/status/data": {
      contentType: "application/json; charset=utf-8",
      load: () => JSON.stringify({ database, everyMs, ...history.columns() }),
      revision: () => history.count(),
    },
  };
}
