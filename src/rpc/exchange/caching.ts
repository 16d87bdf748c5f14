/**
 * What caches may do with answers to GET, by what the contract says that they are made of (RFC 9111). An answer for nobody
 * in particular has the tag of the state that it was made of; who shows that tag again is told that nothing has changed,
 * and sent nothing. All else is for its caller alone.
 */
import { getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { LRUCache } from "lru-cache";
import { caching as cachingOption, Caching } from "../../../gen/gatehouse/annotations/v1/annotations_pb.js";
import type { StateTags } from "../gate.js";
import { type Caller, lifetimeOf, type ServedMethod } from "../service.js";
import { corsHeaders } from "./cors.js";
import { isKnown } from "./entity-tags.js";
import type { Answer, Exchange } from "./exchange.js";

/** For one caller alone: a flat list of names and values, as all lists of headers are. */
export const forCallerAlone: readonly string[] = ["Cache-Control", "private, no-store"];

/** Kept, and asked about before each use. */
const askedAbout = ["Cache-Control", "public, no-cache", "ETag"] as const;
/** Kept for a year, as long as caches keep anything, and not asked about. */
const keptForGood = ["Cache-Control", "public, max-age=31536000, immutable", "ETag"] as const;

/** What the answers of one rpc are told to caches. */
export interface RpcCaching {
  /**
   * The tag of what an answer would be made of now; undefined where nobody may keep it. The caller was let in before.
   */
  tagFor(caller: Caller): string | undefined;
  /** What is told where it is known, without asking the rpc, that the caller has the answer of this tag. */
  tellUnchanged(exchange: Exchange, tag: string | undefined): Told | undefined;
  /**
   * What is told with an answer that was made.
   *
   * @param tag what {@link tagFor} gave before it was made; undefined where nobody may keep it.
   */
  tell(exchange: Exchange, tag: string | undefined, message: object): Told;
}

/** What is told of an answer. */
export interface Told {
  readonly headers: readonly string[];
  /** The caller has this very answer: its body is not sent. */
  readonly isKnown: boolean;
  /** It is answered again and again, to whomever: what is of this moment and this caller does not belong beside it. */
  readonly isForGood: boolean;
}

const toldToCaller: Told = { headers: forCallerAlone, isKnown: false, isForGood: false };
const keptByNobody: RpcCaching = {
  tagFor: () => undefined,
  tellUnchanged: () => undefined,
  tell: () => toldToCaller,
};

/** Most of what is remembered of requests that were answered "nothing has changed", and of one of them. */
const rememberedBytes = 1024 * 1024;
const mostBytes = 2 * 1024;

/**
 * Compiles what the contract says of single rpcs.
 *
 * @param tags none where nobody knows what answers are made of: then nobody keeps them.
 * @throws Error for an rpc whose answers are said to be kept, and that is no unary read.
 */
export function createCaching(tags: StateTags | undefined): (served: ServedMethod) => RpcCaching {
  // An answer is the same for everybody who is nobody in particular, as long as the state is: so whether it is an answer,
  // and no failure, is found once for each state.
  const unchanged = new LRUCache<string, true>({
    maxSize: rememberedBytes,
    sizeCalculation: (_, key) => 2 * key.length,
  });

  return ({ desc }) => {
    const madeOf = getOption(desc, cachingOption);
    if (madeOf === Caching.UNSPECIFIED || tags === undefined) {
      return keptByNobody;
    }
    if (desc.methodKind !== "unary" || desc.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) {
      throw new Error(`${desc.parent.typeName}.${desc.name}: only unary rpcs with NO_SIDE_EFFECTS can be cached.`);
    }
    const tagNow = (): string | undefined => tags.tagOf(madeOf);
    const tellAskedAbout = rememberLast((tag: string) => [...askedAbout, tag]);
    const tellKeptForGood = rememberLast((tag: string) => [...keptForGood, tag]);

    return {
      tagFor: ({ identity }) => (identity === undefined ? tagNow() : undefined),

      tellUnchanged: (exchange, tag) =>
        tag !== undefined &&
        isKnown(tag, exchange.header("if-none-match")) &&
        unchanged.get(keyOf(exchange, tag)) === true
          ? { headers: tellAskedAbout(tag), isKnown: true, isForGood: false }
          : undefined,

      tell(exchange, tag, message) {
        // A block that came in between: nobody can say of which state the answer is.
        if (tag === undefined || tag !== tagNow()) {
          return toldToCaller;
        }
        const lifetime = madeOf === Caching.HASH ? lifetimeOf(message) : "state";
        if (lifetime === "moment") {
          return toldToCaller;
        }
        const known = exchange.header("if-none-match");
        const lasting = lifetime === "for good" ? tags.tagOf(Caching.NETWORK) : undefined;
        if (lasting !== undefined) {
          return { headers: tellKeptForGood(lasting), isKnown: isKnown(lasting, known), isForGood: true };
        }
        const isSame = isKnown(tag, known);
        if (isSame) {
          remember(keyOf(exchange, tag));
        }
        return { headers: tellAskedAbout(tag), isKnown: isSame, isForGood: false };
      },
    };
  };

  function remember(key: string): void {
    if (2 * key.length <= mostBytes) {
      unchanged.set(key, true);
    }
  }
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
export function notModified(requestId: string, told: readonly string[], headers: readonly string[]): Answer {
  return { status: 304, headers: ["X-Request-Id", requestId, ...corsHeaders, ...told, ...headers] };
}
