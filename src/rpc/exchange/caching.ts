/**
 * HTTP caching of responses to GET, by the contract's `caching` option (RFC 9111). A response for anonymous callers
 * carries the entity tag of the state from which it was built. A client that sends the same tag gets 304 without a
 * body. The node also caches the bytes of repeated responses by this tag. All other responses are private to their
 * caller.
 */
import { getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { LRUCache } from "lru-cache";
import { caching as cachingOption, Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import type { StateTags } from "../gate.js";
import { type Caller, lifetimeOf, type ServedMethod } from "../service.js";
import { toCacheableBody } from "./share-bytes.js";
import { corsHeaders } from "./cors.js";
import { matchesIfNoneMatch } from "./entity-tags.js";
import type { HttpResponse, HttpResponseBody, Exchange } from "./exchange.js";

/** Headers of a response that is private to its caller: a flat list of names and values, like all header lists. */
export const privateHeaders: readonly string[] = ["Cache-Control", "private, no-store"];

/** Headers of a cacheable response that caches must revalidate before each use. */
const revalidatedHeaders = ["Cache-Control", "public, no-cache", "ETag"] as const;
/** Headers of an immutable response: cached for a year, the usual maximum, without revalidation. */
const immutableHeaders = ["Cache-Control", "public, max-age=31536000, immutable", "ETag"] as const;

/** Cache directives for the responses of one rpc, and the node's own cache of these responses. */
export interface RpcCaching {
  /**
   * Returns the entity tag of the current state; undefined if the response is not cacheable. The caller must be
   * admitted already.
   */
  tagFor(caller: Caller): string | undefined;
  /** Returns the cached response for this tag, so that the rpc need not run. */
  findCached(exchange: Exchange, tag: string | undefined): CachedResponse | undefined;
  /**
   * Returns the cache directives of a new response.
   *
   * @param tag result of {@link tagFor} before the response was created; undefined if the response is not cacheable.
   */
  directivesFor(exchange: Exchange, tag: string | undefined, message: object): CacheDirectives;
  /** Caches a response with its directives under this tag, for later identical requests. */
  store(exchange: Exchange, tag: string | undefined, directives: CacheDirectives, body: HttpResponseBody): void;
}

/** Cache directives of a response. */
export interface CacheDirectives {
  readonly headers: readonly string[];
  /** True if the client already has this response: the body is not sent. */
  readonly isNotModified: boolean;
  /**
   * True if the response is immutable and the same for every caller. Headers that depend on the time or the caller must
   * be left out.
   */
  readonly isImmutable: boolean;
  /** Entity tag of the response; undefined for a response that is private to its caller. */
  readonly etag: string | undefined;
}

/** Cached response; without a body if the client already has it. */
export interface CachedResponse {
  readonly directives: CacheDirectives;
  readonly body: HttpResponseBody;
}

const privateDirectives: CacheDirectives = {
  headers: privateHeaders,
  isNotModified: false,
  isImmutable: false,
  etag: undefined,
};
const noCaching: RpcCaching = {
  tagFor: () => undefined,
  findCached: () => undefined,
  directivesFor: () => privateDirectives,
  store: () => undefined,
};

/**
 * Cache entry of a request in one state. The first request stores only that it succeeds, later requests also the body.
 */
interface CacheEntry {
  readonly directives: CacheDirectives;
  readonly body: HttpResponseBody | undefined;
}

/** Default limit on cached bytes. */
const defaultCacheBytes = 1024 * 1024;
/**
 * Limits on keys and bodies, in UTF-16 units or bytes. Longer requests rarely repeat; longer bodies are cached
 * elsewhere.
 */
const maxKeyUnits = 1024;
const maxBodyUnits = 64 * 1024;
/** Estimated overhead of an entry besides its texts, in bytes. */
const entryBytes = 300;
const noBody: HttpResponseBody = {};

/**
 * Compiles the caching rules of the contract for single rpcs. Anonymous callers get the same response while the state
 * is the same, so the bytes of successful calls are cached for each state.
 *
 * @param tags undefined if the state has no tags: then responses are not cacheable.
 * @param maxCacheBytes limit on the cached bytes of all responses.
 * @throws Error if the contract makes the responses of an rpc cacheable that is not unary or has side effects.
 */
export function createCaching(
  tags: StateTags | undefined,
  maxCacheBytes = defaultCacheBytes,
): (served: ServedMethod) => RpcCaching {
  const cache = new LRUCache<string, CacheEntry>({ maxSize: maxCacheBytes, sizeCalculation: sizeOf });

  return ({ desc }) => {
    const cachingRule = getOption(desc, cachingOption);
    if (cachingRule === Caching.UNSPECIFIED || tags === undefined) {
      return noCaching;
    }
    if (desc.methodKind !== "unary" || desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) {
      throw new Error(`${desc.parent.typeName}.${desc.name}: only unary rpcs with NO_SIDE_EFFECTS can be cached.`);
    }
    const tagNow = (): string | undefined => tags.tagOf(cachingRule);
    const revalidatedDirectives = memoizeLast((etag) =>
      createDirectives({ headers: [...revalidatedHeaders, etag], isImmutable: false, etag }),
    );
    const immutableDirectives = memoizeLast((etag) =>
      createDirectives({ headers: [...immutableHeaders, etag], isImmutable: true, etag }),
    );

    return {
      tagFor: ({ identity }) => (identity === undefined ? tagNow() : undefined),

      findCached(exchange, tag) {
        const cached = tag === undefined ? undefined : cache.get(keyOf(exchange, tag));
        if (cached === undefined) {
          return undefined;
        }
        const { directives, body } = cached;
        if (matchesIfNoneMatch(directives.etag!, exchange.header("if-none-match"))) {
          return { directives: { ...directives, isNotModified: true }, body: noBody };
        }
        return body && { directives, body };
      },

      directivesFor(exchange, tag, message) {
        // A block arrived during the call, so the state of the response is unknown.
        if (tag === undefined || tag !== tagNow()) {
          return privateDirectives;
        }
        const lifetime = cachingRule === Caching.HASH ? lifetimeOf(message) : "state";
        if (lifetime === "no-store") {
          return privateDirectives;
        }
        const networkTag = lifetime === "immutable" ? tags.tagOf(Caching.NETWORK) : undefined;
        const { full, unchanged } =
          networkTag === undefined ? revalidatedDirectives(tag) : immutableDirectives(networkTag);
        return matchesIfNoneMatch(full.etag!, exchange.header("if-none-match")) ? unchanged : full;
      },

      store(exchange, tag, directives, body) {
        if (tag === undefined || directives.etag === undefined) {
          return;
        }
        const key = keyOf(exchange, tag);
        if (key.length > maxKeyUnits) {
          return;
        }
        // The first request stores only its key, so that a client that reads everything once evicts little.
        const includesBody = !directives.isNotModified && (body.body?.length ?? 0) <= maxBodyUnits && cache.has(key);
        cache.set(key, {
          directives: { ...directives, isNotModified: false },
          body: includesBody ? toCacheableBody(body) : undefined,
        });
      },
    };
  };
}

/** Returns the directives for clients without the response and for those that have it. */
function createDirectives(
  directives: Omit<CacheDirectives, "isNotModified">,
): Readonly<Record<"full" | "unchanged", CacheDirectives>> {
  return { full: { ...directives, isNotModified: false }, unchanged: { ...directives, isNotModified: true } };
}

/** Estimates the size of an entry: two bytes per UTF-16 unit. Bytes shared with other responses count too. */
function sizeOf({ body }: CacheEntry, key: string): number {
  return entryBytes + 2 * (key.length + (body?.body?.length ?? 0));
}

function keyOf({ path, query }: Exchange, tag: string): string {
  return `${tag} ${path}?${query}`;
}

/** Memoizes the result for the last key. */
function memoizeLast<T>(create: (key: string) => T): (key: string) => T {
  let last: { readonly key: string; readonly value: T } | undefined;
  return (key) => {
    if (last?.key !== key) {
      last = { key, value: create(key) };
    }
    return last.value;
  };
}

/** Creates the 304 response for a client that already has the response. */
export function notModified(
  requestId: string,
  directives: readonly string[],
  headers: readonly string[],
): HttpResponse {
  return { status: 304, headers: ["X-Request-Id", requestId, ...corsHeaders, ...directives, ...headers] };
}
