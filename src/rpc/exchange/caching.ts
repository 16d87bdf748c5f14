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
import { isImmutable } from "../../base/caches/immutable.js";
import { RpcError } from "../errors.js";
import type { ProtocolDeps } from "../gate.js";
import { type Caller, fullNameOf, lifetimeOf, type PlainReply, type ServedMethod } from "../service.js";
import type { Exchange, HttpResponse, HttpResponseBody } from "./exchange.js";
import { paceResponse } from "./pacing.js";
import { privateHeaders } from "./responses.js";

export interface CacheableCall {
  readonly invoke: () => object | Promise<object>;
  readonly encode: (message: object) => HttpResponseBody;
  readonly createResponse: (reply: Reply) => HttpResponse;
}

/** Successful reply of an rpc, new or cached. */
export interface Reply extends Directives {
  /** Undefined if the client already has this response: the body is not sent. */
  readonly body: HttpResponseBody | undefined;
  readonly plain?: PlainReply | undefined;
}

interface Directives {
  readonly headers: readonly string[];
  /**
   * True if the response is immutable and the same for every caller. Headers that depend on the time or the caller must
   * be left out.
   */
  readonly isImmutable: boolean;
  /** Entity tag of the response; undefined for a response that is private to its caller. */
  readonly etag: string | undefined;
}

/** Responds to a call of one rpc, from the cache if possible. The caller must be admitted already. */
export type RespondCached = (
  exchange: Exchange,
  caller: Caller,
  call: CacheableCall,
) => HttpResponse | Promise<HttpResponse>;

const defaultCacheBytes = 1024 * 1024;
/**
 * Limits on keys and bodies, in UTF-16 units or bytes. Longer requests rarely repeat; longer bodies are cached
 * elsewhere.
 */
const maxKeyUnits = 1024;
const maxBodyUnits = 64 * 1024;
/** Estimated overhead of an entry besides its texts, in bytes. */
const entryBytes = 300;

const privateDirectives: Directives = { headers: privateHeaders, isImmutable: false, etag: undefined };

/**
 * Compiles the caching rules of the contract for single rpcs. Anonymous callers get the same response while the state
 * is the same, so the bytes of successful calls are cached for each state. Without state tags, no response is
 * cacheable.
 *
 * @throws Error if the contract makes the responses of an rpc cacheable that is not unary or has side effects.
 */
export function createCaching({
  stateTags: tags,
  maxCacheBytes = defaultCacheBytes,
}: Pick<ProtocolDeps, "stateTags" | "maxCacheBytes">): (served: ServedMethod) => RespondCached {
  // The first request stores only that it succeeds, later requests also the body.
  const cache = new LRUCache<string, Reply>({
    maxSize: maxCacheBytes,
    // Two bytes per UTF-16 unit. Bytes shared with other responses count too.
    sizeCalculation: ({ body }, key) => entryBytes + 2 * (key.length + (body?.body?.length ?? 0)),
  });

  return ({ desc, plainReply }) => {
    const rule = tags === undefined ? Caching.UNSPECIFIED : getOption(desc, cachingOption);
    if (
      rule !== Caching.UNSPECIFIED &&
      (desc.methodKind !== "unary" || desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS)
    ) {
      throw new Error(`${fullNameOf(desc)}: only unary rpcs with NO_SIDE_EFFECTS can be cached.`);
    }
    const tagNow = (): string | undefined => (rule === Caching.UNSPECIFIED ? undefined : tags!.tagOf(rule));

    /** @param tag entity tag of the state before the call; undefined if the response is not cacheable. */
    function directivesOf(message: object, tag: string | undefined): Directives {
      // A block arrived during the call, so the state of the response is unknown.
      if (tag === undefined || tag !== tagNow()) {
        return privateDirectives;
      }
      const lifetime = rule === Caching.HASH ? lifetimeOf(message) : "state";
      if (lifetime === "no-store") {
        return privateDirectives;
      }
      const networkTag = lifetime === "immutable" ? tags!.tagOf(Caching.NETWORK) : undefined;
      return networkTag === undefined
        ? { headers: ["Cache-Control", "public, no-cache", "ETag", tag], isImmutable: false, etag: tag }
        : {
            // A year is the usual maximum.
            headers: ["Cache-Control", "public, max-age=31536000, immutable", "ETag", networkTag],
            isImmutable: true,
            etag: networkTag,
          };
    }

    return (exchange, { identity }, { invoke, encode, createResponse }) => {
      const tag = identity === undefined ? tagNow() : undefined;
      const key = tag === undefined ? undefined : `${tag} ${exchange.path}?${exchange.query}`;
      const cached = key === undefined ? undefined : cache.get(key);
      const isRead = exchange.method !== "POST";
      if (cached !== undefined && isRead) {
        checkIfMatch(exchange, cached.etag);
      }
      if (cached !== undefined && hasResponse(exchange, cached)) {
        return createResponse({ ...cached, body: undefined });
      }
      if (cached?.body !== undefined) {
        return createResponse(cached);
      }

      const respond = (message: object): HttpResponse => {
        const directives = directivesOf(message, tag);
        const plain = plainReply?.(message);
        if (isRead && (plain === undefined || plain.status < 300)) {
          checkIfMatch(exchange, directives.etag);
        }
        const body = hasResponse(exchange, directives) ? undefined : encode(message);
        const isCacheable = plain === undefined && directives.etag !== undefined && key!.length <= maxKeyUnits;
        if (isCacheable) {
          // The first request stores only its key, so that a client that reads everything once evicts little.
          const isRepeated = body !== undefined && (body.body?.length ?? 0) <= maxBodyUnits && cache.has(key!);
          cache.set(key!, { ...directives, body: isRepeated ? toCacheableBody(body) : undefined });
        }
        const { headers, isImmutable: isLasting, etag } = directives;
        return createResponse({ headers, isImmutable: isLasting, etag, body, plain });
      };
      const message = invoke();
      return message instanceof Promise
        ? (message as Promise<object>).then((resolved) => paceResponse(() => respond(resolved)))
        : respond(message);
    };
  };
}

/** Returns true if the client already has the response with this tag. */
function hasResponse(exchange: Exchange, { etag }: Directives): boolean {
  return etag !== undefined && matchesIfNoneMatch(etag, exchange.header("if-none-match"));
}

/** Minimum length of a shared body. Shorter texts are sent faster as strings, together with the headers. */
const minSharedLength = 16 * 1024;

/** Wraps an encoder so that long encodings of immutable messages are cached as bytes, as long as the message exists. */
export function shareBytes(encode: (message: object) => string | Buffer): (message: object) => HttpResponseBody {
  const encodings = new WeakMap<object, HttpResponseBody>();
  return (message) => {
    const encoded = encodings.get(message);
    if (encoded !== undefined) {
      return encoded;
    }
    const body = encode(message);
    if (body.length < minSharedLength || !isImmutable(message)) {
      return { body };
    }
    const shared = { body: typeof body === "string" ? Buffer.from(body) : body, isShared: true };
    encodings.set(message, shared);
    return shared;
  };
}

/** Converts a body to the form in which it is cached and sent repeatedly. */
function toCacheableBody({ body }: HttpResponseBody): HttpResponseBody {
  if (typeof body !== "string") {
    return { body, isShared: body !== undefined };
  }
  const bytes = Buffer.from(body);
  // V8 stores a concatenated string as a tree, and flattens it on each use. This copy is flat.
  return bytes.length < minSharedLength ? { body: bytes.toString() } : { body: bytes, isShared: true };
}

/** Pattern of the next tag and the separators before it, or of the end of the list. */
const nextTag = /[ \t,]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)|$)/y;

/** Returns true if a list of entity tags has one that `matches` accepts. A malformed list has none. */
function hasTag(list: string, matches: (etag: string) => boolean): boolean {
  let isListed = false;
  nextTag.lastIndex = 0;
  while (nextTag.lastIndex < list.length) {
    const match = nextTag.exec(list);
    if (match === null) {
      return false;
    }
    isListed ||= match[1] !== undefined && matches(match[1]);
  }
  return isListed;
}

const opaqueOf = (etag: string): string => etag.replace(/^W\//, "");

/**
 * Returns true if `If-None-Match` names this tag, so the client has the response (RFC 9110, sections 8.8.3 and 13.1.2).
 * Weak and strong tags with the same text are equal.
 *
 * @param etag the tag with its quotes, and with `W/` if weak.
 */
export function matchesIfNoneMatch(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) {
    return false;
  }
  if (ifNoneMatch === etag || ifNoneMatch.trim() === "*") {
    return true;
  }
  const text = opaqueOf(etag);
  return hasTag(ifNoneMatch, (listed) => opaqueOf(listed) === text);
}

/**
 * Rejects a read whose response is not the one that `If-Match` names (RFC 9110, section 13.1.1). Weak tags equal none.
 *
 * @param etag the tag of the response; undefined without one.
 * @throws RpcError PRECONDITION_FAILED
 */
export function checkIfMatch(exchange: Pick<Exchange, "header">, etag: string | undefined): void {
  const ifMatch = exchange.header("if-match");
  if (ifMatch === undefined || ifMatch.trim() === "*") {
    return;
  }
  if (etag === undefined || etag.startsWith("W/") || !hasTag(ifMatch, (listed) => listed === etag)) {
    throw new RpcError(
      "PRECONDITION_FAILED",
      `The response has ${etag === undefined ? "no tag" : `the tag ${etag}`}, which If-Match does not name; omit If-Match.`,
    );
  }
}
