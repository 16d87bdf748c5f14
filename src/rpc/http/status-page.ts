/** The status page: one document for an operator's eyes, which may run its own script and ask its own node, no more. */
import { assetHash, inlined, readAssets } from "./assets.js";
import type { Pages } from "./pages.js";

/** What the page shows that the interface does not tell. */
export interface StatusPageData {
  readonly history: { count(): number; columns(): object };
  /** From one point of the history to the next. */
  readonly everyMs: number;
  /** What the database is called. */
  readonly database: string;
}

/** The page, and what it alone reads: it changes with the page, and is no part of the interface. */
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
