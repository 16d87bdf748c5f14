/**
 * Serves annotated rpcs as plain HTTP with JSON. Each route is compiled at start-up: path template to matcher, request
 * to binder, response to encoder.
 */
import type { Lease, ProtocolParts } from "../gate.js";
import type { Answer, AnswerBody, Exchange, Handler } from "../exchange/exchange.js";
import { maxBodyBytes } from "../exchange/body.js";
import { createCaching, notModified, type Recalled, type RpcCaching } from "../exchange/caching.js";
import { failureAnswer, jsonAnswer } from "../exchange/reply.js";
import { serve } from "../exchange/serve.js";
import { answerInTurn } from "../exchange/turns.js";
import { type HttpRoute, readHttpRule } from "./http-rule.js";
import { jsonEncoder, jsonFieldEncoder } from "../codec/json-encoder.js";
import { shareBytes } from "../exchange/share-bytes.js";
import { pathFieldsOf } from "./path-template.js";
import { compileResume, compileStream } from "./event-stream.js";
import { compileRequestBinder } from "./request-binder.js";
import { createRouteTable, type RouteMatch, type RouteTable } from "./route-table.js";
import type { Call, PlainReply, ServedMethod } from "../service.js";

/** A request on its way to a route. */
interface Asked {
  readonly exchange: Exchange;
  /** Of the path. */
  readonly parameters: readonly string[];
  readonly lease: Lease;
  readonly call: Call;
}

interface Route {
  readonly served: ServedMethod;
  respond(asked: Asked): Answer | Promise<Answer | undefined>;
}

/** Plain HTTP over the annotated rpcs. */
export interface Transcoder {
  /** Answers the request if a route has its path and method. */
  readonly handle: Handler;
  /**
   * The HTTP methods that a path has; empty for an unknown path.
   *
   * @throws Failure INVALID_REQUEST when its percent-encoding is malformed.
   */
  methodsOf(path: string): string[];
}

/**
 * Compiles the routes of all annotated rpcs.
 *
 * @throws Error that names both rpcs when two of them claim the same paths.
 */
export function createTranscoder(parts: ProtocolParts): Transcoder {
  const routes = compileRoutes(parts);

  /** What has no route, malformed paths included, is answered by others. */
  function findOrUndefined(path: string): RouteMatch<Route> | undefined {
    try {
      return routes.find(path);
    } catch {
      return undefined;
    }
  }

  function handle(exchange: Exchange): boolean {
    const match = findOrUndefined(exchange.path);
    const route = match?.endpoints.get(exchange.method);
    if (match === undefined || route === undefined) {
      return false;
    }
    serve(
      exchange,
      {
        protocol: "http",
        method: route.served,
        respond: (lease, call) => route.respond({ exchange, parameters: match.parameters, lease, call }),
        refuse: (failure, headers) => failureAnswer(exchange.requestId, failure, headers),
      },
      parts,
    );
    return true;
  }

  return { handle, methodsOf: (path) => [...(routes.find(path)?.endpoints.keys() ?? [])] };
}

function compileRoutes(parts: ProtocolParts): RouteTable<Route> {
  const routes = createRouteTable<Route>();
  const cachingOf = createCaching(parts.stateTags, parts.keptAnswerBytes);
  for (const served of parts.services.flatMap(({ methods }) => methods)) {
    const rule = readHttpRule(served.desc);
    if (rule === undefined) {
      continue;
    }
    const owner = `${served.desc.parent.typeName}.${served.desc.name}`;
    const route = rule.isStream
      ? compileStreamRoute(served, rule, parts)
      : compileRoute(served, rule, cachingOf(served));
    routes.add(rule.method, rule.template, owner, route);
    if (rule.method === "GET" && !rule.isStream) {
      routes.add("HEAD", rule.template, owner, route);
    }
  }
  return routes;
}

function compileRoute(
  served: ServedMethod,
  { template, responseField, hasBody }: HttpRoute,
  caching: RpcCaching,
): Route {
  const { input, output } = served.desc;
  const bind = compileRequestBinder(input, pathFieldsOf(template), hasBody);
  const encode = shareBytes(responseField === undefined ? jsonEncoder(output) : jsonFieldEncoder(responseField));
  const answerOf = compileAnswer(served, encode, caching);
  return {
    served,
    respond({ exchange, parameters, lease, call }) {
      const tag = caching.tagFor(call.caller);
      const recalled = caching.recall(exchange, tag);
      if (recalled !== undefined) {
        return answerTold(recalled, exchange, lease);
      }
      const answer = (message: object): Answer => answerOf(message, tag, exchange, lease);
      const later = (message: object) => answerInTurn(() => answer(message));
      if (hasBody) {
        return exchange
          .readBytes(maxBodyBytes, lease)
          .then((body) => served.invoke(bind(parameters, exchange.query, body.toString("utf8")), call))
          .then(later);
      }
      const message = served.invoke(bind(parameters, exchange.query, undefined), call);
      return message instanceof Promise ? (message as Promise<object>).then(later) : answer(message);
    },
  };
}

/** What is made of a response, and of the tag that the state had before it was made. */
type MakeAnswer = (message: object, tag: string | undefined, exchange: Exchange, lease: Lease) => Answer;

function compileAnswer(served: ServedMethod, encode: (message: object) => AnswerBody, caching: RpcCaching): MakeAnswer {
  return (message, tag, exchange, lease) => {
    const told = caching.tell(exchange, tag, message);
    const plain = served.plainReply?.(message);
    const body = told.isKnown ? noBody : encode(message);
    if (plain === undefined) {
      caching.keep(exchange, tag, told, body);
    }
    return answerTold({ told, body }, exchange, lease, plain);
  };
}

/** The answer that is told so, or that there is nothing new; `plain` is what it has beyond its body. */
function answerTold({ told, body }: Recalled, { requestId }: Exchange, lease: Lease, plain?: PlainReply): Answer {
  const ofRequest = told.isForGood ? noHeaders : lease.headers;
  if (told.isKnown) {
    return notModified(requestId, told.headers, ofRequest);
  }
  const own = plain?.headers === undefined ? noHeaders : Object.entries(plain.headers).flat();
  return jsonAnswer(requestId, plain?.status ?? 200, body, [...told.headers, ...ofRequest, ...own]);
}

const noBody: AnswerBody = {};
const noHeaders: readonly string[] = [];

function compileStreamRoute(served: ServedMethod, rule: HttpRoute, parts: ProtocolParts): Route {
  const bind = compileRequestBinder(served.desc.input, pathFieldsOf(rule.template), false);
  const resume = compileResume(served.desc.input);
  const send = compileStream(served, rule, parts);
  return {
    served,
    async respond({ exchange, parameters, lease, call }) {
      const request = resume(bind(parameters, exchange.query, undefined), exchange);
      await send(exchange, lease, served.invoke(request, call) as AsyncIterable<object>);
      return undefined;
    },
  };
}
