/** Documents that the node serves beside its rpcs: each is made when it is first asked for, and kept. */
import { corsHeaders } from "../exchange/cors.js";
import type { Answer } from "../exchange/exchange.js";

export interface Page {
  readonly contentType: string;
  /** What the page may load (Content-Security-Policy); nothing when left out. */
  readonly policy?: string;
  /** Makes the content. */
  readonly load: () => string | Buffer;
}

/** Documents by path. */
export type Pages = Readonly<Record<string, Page>>;

export interface PageServer {
  has(path: string): boolean;
  answer(path: string, headers: readonly string[]): Answer;
}

export function createPageServer(pages: Pages): PageServer {
  const byPath = new Map(Object.entries(pages));
  const loaded = new Map<string, Buffer>();

  function load(path: string, page: Page): Buffer {
    let content = loaded.get(path);
    if (content === undefined) {
      content = Buffer.from(page.load() as string);
      loaded.set(path, content);
    }
    return content;
  }

  return {
    has: (path) => byPath.has(path),
    answer(path, headers) {
      const page = byPath.get(path)!;
      return {
        status: 200,
        headers: [
          ...["Content-Type", page.contentType, "Cache-Control", "no-cache"],
          ...[
            "Content-Security-Policy",
            `default-src 'none'; frame-ancestors 'none'; base-uri 'none'${page.policy === undefined ? "" : `; ${page.policy}`}`,
          ],
          ...["X-Content-Type-Options", "nosniff", "Referrer-Policy", "no-referrer"],
          ...corsHeaders,
          ...headers,
        ],
        body: load(path, page),
        isShared: true,
      };
    },
  };
}
