/** HTML pages, from files of the assets directory: common header and footer, with style and scripts inlined. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Pages, StaticPage } from "./pages.js";

function readAssets(...names: readonly string[]): string {
  return names.map((name) => readFileSync(new URL(`../../../assets/${name}`, import.meta.url), "utf8")).join("\n");
}

export interface PageAssets {
  readonly html: string;
  /** Styles besides the common ones. */
  readonly styles: readonly string[];
  readonly scripts: readonly string[];
  readonly policy?: string;
  /** Returns the content for `<!--BODY-->`. By default the page has none. */
  readonly body?: () => string | Promise<string>;
}

/** Creates a page in the common header and footer. It runs only its own scripts and requests data only from its node. */
export function createPage({ html, styles, scripts, policy, body = () => "" }: PageAssets): StaticPage {
  const style = readAssets("common.css", "shell.css", ...styles);
  const theme = readAssets("theme.js");
  const script = readAssets(...scripts);
  return {
    contentType: "text/html; charset=utf-8",
    policy: [
      `script-src ${hashOf(theme)} ${hashOf(script)}`,
      `style-src ${hashOf(style)}`,
      "img-src data:",
      "connect-src 'self'",
      "form-action 'none'",
      ...(policy === undefined ? [] : [policy]),
    ].join("; "),
    load: async () => {
      const parts: Readonly<Record<string, string>> = {
        "<!--HEADER-->": readAssets("header.html"),
        "<!--BODY-->": await body(),
        "<!--FOOTER-->": readAssets("footer.html"),
        "/*THEME*/": theme,
        "/*STYLE*/": style,
        "/*SCRIPT*/": script,
      };
      return readAssets(html).replace(/<!--[A-Z]+-->|\s*(\/\*[A-Z]+\*\/)\s*/g, (found) => parts[found.trim()]!);
    },
  };
}

/** Returns the hash by which a Content-Security-Policy permits an inline style or script. */
function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Creates the explorer page for the content of the network. The page loads its data through the API. */
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

export interface StatusPageData {
  readonly history: { count(): number; columns(): object };
  /** Interval between points of the history, in milliseconds. */
  readonly everyMs: number;
  readonly database: string;
}

/**
 * Creates the status page for operators and its data document. The data format changes with the page, and is not part
 * of the API.
 */
export function createStatusPages({ history, everyMs, database }: StatusPageData): Pages {
  return {
    "/status": createPage({
      html: "status.html",
      styles: ["status.css", "views.css", "cards.css"],
      scripts: ["status.js"],
    }),
    "/status/data": {
      contentType: "application/json; charset=utf-8",
      load: () => JSON.stringify({ database, everyMs, ...history.columns() }),
      revision: () => history.count(),
    },
  };
}
