/**
 * What caches may do with answers to GET, by what the contract says that they are made of (RFC 9111). An answer for nobody
 * in particular has the tag of the state that it was made of; who shows that tag again is told that nothing has changed,
 * and sent nothing. The node itself is the first of these caches: by the same tag it keeps the bytes of what is asked again
 * and again. All else is for its caller alone.
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

/** For one caller alone: a flat list of names and values, as all lists of headers are. */
export const forCallerAlone: readonly string[] = ["Cache-Control", "private, no-store"];

/** Kept, and asked about before each use. */
const askedAbout = ["Cache-Control", "public, no-cache", "ETag"] as const;
/** Kept for a year, as long as caches keep anything, and not asked about. */
const keptForGood = ["Cache-Control", "public, max-age=31536000, immutable", "ETag"] as const;

/** What the answers of one rpc are told to caches, and what is kept of them here. */
export interface RpcCaching {
  /**
   * The tag of what an answer would be made of now; undefined where nobody may keep it. The caller was let in before.
   */
  tagFor(caller: Caller): string | undefined;
  /** The answer where the rpc need not be asked for it: it was before, in the state of this tag. */
  recall(exchange: Exchange, tag: string | undefined): Recalled | undefined;
  /**
   * What is told with an answer that was made.
   *
   * @param tag what {@link tagFor} gave before it was made; undefined where nobody may keep it.
   */
  tell(exchange: Exchange, tag: string | undefined, message: object): CacheDirectives;
  /** Keeps an answer that was told so, in the state of this tag, for whoever asks the same. */
  keep(exchange: Exchange, tag: string | undefined, told: CacheDirectives, body: HttpResponseBody): void;
}

/** What is told of an answer. */
export interface CacheDirectives {
  readonly headers: readonly string[];
  /** The caller has this very answer: its body is not sent. */
  readonly isKnown: boolean;
  /** It is answered again and again, to whomever: what is of this moment and this caller does not belong beside it. */
  readonly isForGood: boolean;
  /** The tag that it is sent with; undefined for an answer that is for its caller alone. */
  readonly etag: string | undefined;
}

/** An answer that was given before; without a body where the caller has it. */
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

/** What is known of a question in one state: that it has an answer, and from the second time on the answer's bytes. */
interface Known {
  readonly told: CacheDirectives;
  readonly body: HttpResponseBody | undefined;
}

/** Most bytes of what is kept, where nobody says how many. */
const defaultKeptBytes = 1024 * 1024;
/** Longer questions and answers are not kept: they are nobody's but one's, or kept elsewhere. */
const mostKeyUnits = 1024;
const mostBodyUnits = 64 * 1024;
/** Roughly what one costs beside its texts. */
const entryBytes = 300;
const noBody: HttpResponseBody = {};

/**
 * Compiles what the contract says of single rpcs. Whoever has no identity is answered the same for as long as the state is
 * the same: so whether there is an answer, and no failure, is found once for each state, and its bytes are made once.
 *
 * @param tags none where nobody knows what answers are made of: then nobody keeps them.
 * @param keptBytes most bytes of what is kept here of all answers.
 * @throws Error for an rpc whose answers are said to be kept, and that is no unary read.
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
        // A block that came in between: nobody can say of which state the answer is.
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
        // What is asked once only takes no room but its name's, so that reading everything once drives out little.
        const isKept = !told.isKnown && (body.body?.length ?? 0) <= mostBodyUnits && answers.has(key);
        answers.set(key, { told: { ...told, isKnown: false }, body: isKept ? toLastingBody(body) : undefined });
      },
    };
  };
}

/** How an answer is told to whoever does not have it, and to whoever does. */
function tellBoth(told: Omit<CacheDirectives, "isKnown">): Readonly<Record<"whole" | "unchanged", CacheDirectives>> {
  return { whole: { ...told, isKnown: false }, unchanged: { ...told, isKnown: true } };
}

/** Two bytes for each unit of a text at most; bytes that are shared with other answers count here, too. */
function sizeOf({ body }: Known, key: string): number {
  return entryBytes + 2 * (key.length + (body?.body?.length ?? 0));
}

function keyOf({ path, query }: Exchange, tag: string): string {
  return `${tag} ${path}?${query}`;
}

/** The same for one after the other, made once. */
function rememberLast<T>(make: (key: string) => T): (key: string) => T {
  let last: { readonly key: string; readonly made: T } | undefined;
  return (key) => {
    if (last?.key !== key) {
      last = { key, made: make(key) };
    }
    return last.made;
  };
}

/** The answer to a caller who has it already. */
export function notModified(requestId: string, told: readonly string[], headers: readonly string[]): HttpResponse {
  return { status: 304, headers: ["X-Request-Id", requestId, ...corsHeaders, ...told, ...headers] };
}
