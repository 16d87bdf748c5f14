/** Status page for operators. */
import { createPage } from "./assets.js";
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
  return {
    "/status": createPage({
      html: "status.html",
      styles: ["status.css", "cards.css"],
      scripts: ["shell.js", "status-words.js", "status-plots.js", "status.js"],
    }),
    "/status/data": {
      contentType: "application/json; charset=utf-8",
      load: () => JSON.stringify({ database, everyMs, ...history.columns() }),
      revision: () => history.count(),
    },
  };
}
