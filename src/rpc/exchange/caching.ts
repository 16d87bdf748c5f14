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
import { toLastingBody } from "./share-bytes.js";
import { corsHeaders } from "./cors.js";
import { isKnown } from "./entity-tags.js";
import type { HttpResponse, HttpResponseBody, Exchange } from "./exchange.js";

/** Headers of a response that is private to its caller: a flat list of names and values, like all header lists. */
export const forCallerAlone: readonly string[] = ["Cache-Control", "private, no-store"];

/** Headers of a cacheable response that caches must revalidate before each use. */
const askedAbout = ["Cache-Control", "public, no-cache", "ETag"] as const;
/** Headers of an immutable response: cached for a year, the usual maximum, without revalidation. */
const keptForGood = ["Cache-Control", "public, max-age=31536000, immutable", "ETag"] as const;

/** Cache directives for the responses of one rpc, and the node's own cache of these responses. */
export interface RpcCaching {
  /**
   * Returns the entity tag of the current state; undefined if the response is not cacheable. The caller must be
   * admitted already.
   */
  tagFor(caller: Caller): string | undefined;
  /** Returns the cached response for this tag, so that the rpc need not run. */
  recall(exchange: Exchange, tag: string | undefined): Recalled | undefined;
  /**
   * Returns the cache directives of a new response.
   *
   * @param tag result of {@link tagFor} before the response was created; undefined if the response is not cacheable.
   */
  tell(exchange: Exchange, tag: string | undefined, message: object): CacheDirectives;
  /** Caches a response with its directives under this tag, for later identical requests. */
  keep(exchange: Exchange, tag: string | undefined, told: CacheDirectives, body: HttpResponseBody): void;
}

/** Cache directives of a response. */
export interface CacheDirectives {
  readonly headers: readonly string[];
  /** True if the client already has this response: the body is not sent. */
  readonly isKnown: boolean;
  /**
   * True if the response is immutable and the same for every caller. Headers that depend on the time or the caller must
   * be left out.
   */
  readonly isForGood: boolean;
  /** Entity tag of the response; undefined for a response that is private to its caller. */
  readonly etag: string | undefined;
}

/** Cached response; without a body if the client already has it. */
export interface Recalled {
  readonly told: CacheDirectives;
  readonly body: HttpResponseBody;
}

const toldToCaller: CacheDirectives = { headers: forCallerAlone, isKnown: false, isForGood: false, etag: undefined };
const keptByNobody: RpcCaching = {
  tagFor: () => undefined,
  recall: () => undefined,
  tell: () => toldToCaller,
  keep: () => undefined,
};

/**
 * Cache entry of a request in one state. The first request stores only that it succeeds, later requests also the body.
 */
interface Known {
  readonly told: CacheDirectives;
  readonly body: HttpResponseBody | undefined;
}

/** Default limit on cached bytes. */
const defaultKeptBytes = 1024 * 1024;
/**
 * Limits on keys and bodies, in UTF-16 units or bytes. Longer requests rarely repeat; longer bodies are cached
 * elsewhere.
 */
const mostKeyUnits = 1024;
const mostBodyUnits = 64 * 1024;
/** Estimated overhead of an entry besides its texts, in bytes. */
const entryBytes = 300;
const noBody: HttpResponseBody = {};

/**
 * Compiles the caching rules of the contract for single rpcs. Anonymous callers get the same response while the state
 * is the same, so a successful call and its bytes are remembered for each state.
 *
 * @param tags undefined if the state has no tags: then responses are not cacheable.
 * @param keptBytes limit on the cached bytes of all responses.
 * @throws Error if the contract makes the responses of an rpc cacheable that is not unary or has side effects.
 */
export function createCaching(
  tags: StateTags | undefined,
  keptBytes = defaultKeptBytes,
): (served: ServedMethod) => RpcCaching {
  const answers = new LRUCache<string, Known>({ maxSize: keptBytes, sizeCalculation: sizeOf });

  return ({ desc }) => {
    const madeOf = getOption(desc, cachingOption);
    if (madeOf === Caching.UNSPECIFIED || tags === undefined) {
      return keptByNobody;
    }
    if (desc.methodKind !== "unary" || desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) {
      throw new Error(`${desc.parent.typeName}.${desc.name}: only unary rpcs with NO_SIDE_EFFECTS can be cached.`);
    }
    const tagNow = (): string | undefined => tags.tagOf(madeOf);
    const tellAskedAbout = rememberLast((etag) => tellBoth({ headers: [...askedAbout, etag], isForGood: false, etag }));
    const tellKeptForGood = rememberLast((etag) =>
      tellBoth({ headers: [...keptForGood, etag], isForGood: true, etag }),
    );

    return {
      tagFor: ({ identity }) => (identity === undefined ? tagNow() : undefined),

      recall(exchange, tag) {
        const known = tag === undefined ? undefined : answers.get(keyOf(exchange, tag));
        if (known === undefined) {
          return undefined;
        }
        const { told, body } = known;
        if (isKnown(told.etag!, exchange.header("if-none-match"))) {
          return { told: { ...told, isKnown: true }, body: noBody };
        }
        return body && { told, body };
      },

      tell(exchange, tag, message) {
        // A block arrived during the call, so the state of the response is unknown.
        if (tag === undefined || tag !== tagNow()) {
          return toldToCaller;
        }
        const lifetime = madeOf === Caching.HASH ? lifetimeOf(message) : "state";
        if (lifetime === "moment") {
          return toldToCaller;
        }
        const lasting = lifetime === "for good" ? tags.tagOf(Caching.NETWORK) : undefined;
        const { whole, unchanged } = lasting === undefined ? tellAskedAbout(tag) : tellKeptForGood(lasting);
        return isKnown(whole.etag!, exchange.header("if-none-match")) ? unchanged : whole;
      },

      keep(exchange, tag, told, body) {
        if (tag === undefined || told.etag === undefined) {
          return;
        }
        const key = keyOf(exchange, tag);
        if (key.length > mostKeyUnits) {
          return;
        }
        // The first request stores only its key, so that a client that reads everything once evicts little.
        const isKept = !told.isKnown && (body.body?.length ?? 0) <= mostBodyUnits && answers.has(key);
        answers.set(key, { told: { ...told, isKnown: false }, body: isKept ? toLastingBody(body) : undefined });
      },
    };
  };
}

/** Returns the directives for clients without the response and for those that have it. */
function tellBoth(told: Omit<CacheDirectives, "isKnown">): Readonly<Record<"whole" | "unchanged", CacheDirectives>> {
  return { whole: { ...told, isKnown: false }, unchanged: { ...told, isKnown: true } };
}

/** Estimates the size of an entry: two bytes per UTF-16 unit. Bytes shared with other responses count too. */
function sizeOf({ body }: Known, key: string): number {
  return entryBytes + 2 * (key.length + (body?.body?.length ?? 0));
}

function keyOf({ path, query }: Exchange, tag: string): string {
  return `${tag} ${path}?${query}`;
}

/** Memoizes the result for the last key. */
function rememberLast<T>(make: (key: string) => T): (key: string) => T {
  let last: { readonly key: string; readonly made: T } | undefined;
  return (key) => {
    if (last?.key !== key) {
      last = { key, made: make(key) };
    }
    return last.made;
  };
}

/** Creates the 304 response for a client that already has the response. */
export function notModified(requestId: string, told: readonly string[], headers: readonly string[]): HttpResponse {
  return { status: 304, headers: ["X-Request-Id", requestId, ...corsHeaders, ...told, ...headers] };
}
