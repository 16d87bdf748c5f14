/**
 * Documents that the node serves besides its rpcs. A document is created and compressed on the first request, and
 * cached until its revision changes. Browsers also cache documents, and revalidate by entity tag.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { corsHeaders } from "../exchange/responses.js";
import { checkIfMatch, matchesIfNoneMatch } from "../exchange/caching.js";
import type { HttpResponse, Exchange } from "../exchange/exchange.js";
import { type Coding, codingFor } from "./negotiation.js";
import { RouteTable } from "./route-table.js";

export interface StaticPage {
  readonly contentType: string;
  /** Additional Content-Security-Policy directives; by default the page may load nothing. */
  readonly policy?: string;
  readonly load: () => string | Buffer | Promise<string>;
  /** Returns a number that changes with the content. Without this function the content never changes. */
  readonly revision?: () => number;
}

export type Pages = Readonly<Record<string, StaticPage>>;

export type PageServer = ReturnType<typeof createPageServer>;

interface Representation {
  readonly body: Buffer;
  /** Strong entity tag, with its quotes: unique for each body. */
  readonly etag: string;
}

type Represent = (coding: Coding) => Promise<Representation>;

/** Compression functions, which run in the thread pool. Higher quality would take more time and save almost nothing. */
const compress: Readonly<Record<Exclude<Coding, "identity">, (content: Buffer) => Promise<Buffer>>> = {
  br: (content) =>
    promisify(brotliCompress)(content, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
    }),
  gzip: (content) => promisify(gzip)(content),
};

export function createPageServer(pages: Pages) {
  const table = new RouteTable<StaticPage>();
  for (const [path, page] of Object.entries(pages)) {
    table.add("GET", path, "a document", page);
  }
  const find = (path: string): StaticPage | undefined => table.find(path)?.endpoints.get("GET");
  const loaded = new Map<
    StaticPage,
    { readonly revision: number | undefined; readonly represent: Promise<Represent> }
  >();

  /** Loads the content once for each revision. Concurrent requests wait for it; after an error, the next loads again. */
  function load(page: StaticPage): Promise<Represent> {
    const revision = page.revision?.();
    const last = loaded.get(page);
    if (last !== undefined && last.revision === revision) {
      return last.represent;
    }
    const represent = (async () => createRepresentations(Buffer.from((await page.load()) as string)))();
    const current = { revision, represent };
    loaded.set(page, current);
    represent.catch(() => loaded.get(page) === current && loaded.delete(page));
    return represent;
  }

  return {
    paths: Object.keys(pages),
    has: (path: string): boolean => find(path) !== undefined,
    async respond(request: Pick<Exchange, "path" | "header">, headers: readonly string[]): Promise<HttpResponse> {
      const page = find(request.path)!;
      if (request.path.endsWith("/") && page.contentType.startsWith("text/html")) {
        // The links of a page are relative, and would name paths below it.
        const name = request.path.slice(0, -1).replace(/^.*\//, "");
        return { status: 308, headers: ["Location", `../${name}`, ...corsHeaders, ...headers] };
      }
      const coding = codingFor(request.header("accept-encoding"));
      const { body, etag } = await (await load(page))(coding);
      const validators = ["ETag", etag, "Cache-Control", "no-cache", "Vary", "Accept-Encoding"];
      checkIfMatch(request, etag);
      if (matchesIfNoneMatch(etag, request.header("if-none-match"))) {
        return { status: 304, headers: [...validators, ...corsHeaders, ...headers] };
      }
      return {
        status: 200,
        headers: [
          ...["Content-Type", page.contentType, ...(coding === "identity" ? [] : ["Content-Encoding", coding])],
          ...validators,
          ...[
            "Content-Security-Policy",
            `default-src 'none'; frame-ancestors 'none'; base-uri 'none'${page.policy === undefined ? "" : `; ${page.policy}`}`,
          ],
          ...["Referrer-Policy", "no-referrer"],
          ...corsHeaders,
          ...headers,
        ],
        body,
        isShared: true,
      };
    },
  };
}

/**
 * Returns a function that compresses the content once per coding. Concurrent requests wait for the same bytes.
 * After an error, the next request tries again.
 */
function createRepresentations(content: Buffer): Represent {
  const hash = createHash("sha256").update(content).digest("base64url").slice(0, 22);
  const representations = new Map<Coding, Promise<Representation>>();
  return (coding) => {
    let representation = representations.get(coding);
    if (representation === undefined) {
      representation =
        coding === "identity"
          ? Promise.resolve({ body: content, etag: `"${hash}"` })
          : compress[coding](content).then((body) => ({ body, etag: `"${hash}-${coding}"` }));
      representations.set(coding, representation);
      representation.catch(() => representations.delete(coding));
    }
    return representation;
  };
}
