/**
 * The tests of a cell of the matrix: contract cases and all streams in a protocol over a transport. They are compared
 * with the responses over plain HTTP/1.1, which contract.test.ts compares with snapshots.
 */
import { create, type DescMethod, getOption, type Message, toJsonString } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { TestFn } from "ava";
import { isDeepStrictEqual } from "node:util";
import { caching, Caching } from "../../gen/gatehouse/annotations/v1/annotations_pb.js";
import { readHttpRoutes } from "../../src/rpc/http/http-rule.js";
import type { PlainRequest, PlainResponse } from "../helpers/wire/plain-client.js";
import { referenceJson } from "../helpers/wire/reference-json.js";
import { type AnyRpcProtocol, connectRpc } from "../helpers/wire/rpc-clients.js";
import { connectTransport, type TransportName, transports } from "../helpers/wire/transports.js";
import { type ContractCase, describe, mask, type NodeName, plainRequestOf } from "./case.js";
import { cases } from "./cases.js";
import {
  type Comparison,
  comparePlainResponses,
  connectProtocol,
  homeOf,
  type Protocol,
  streaming,
} from "./compare.js";
import { type ContractNodes, plainTransport } from "./nodes.js";
import { checkStreamRules } from "./stream-rules.js";
import { type StreamCase, streams } from "./streams.js";
import { surface } from "./surface.js";

/** Two nodes with the expected responses. */
export interface Side {
  readonly nodes: ContractNodes;
  /** Nodes with the same data that provide the expected responses over plain HTTP/1.1. */
  readonly reference: ContractNodes;
  readonly plain: ReadonlyMap<ContractCase, PlainResponse>;
}

/** Nodes that the transports of a test file need. */
export type Sides = Readonly<Partial<Record<"cleartext" | "tls", Side>>>;

const concurrency = 16;
const maxShown = 10;
/** Limit on the characters of a path: the node accepts lines and headers of 16 KiB. */
const maxPathCharacters = 10_000;

/** Sends the cases twice, because some change the responses of others. The second time, nothing new is submitted. */
export async function askAll(nodes: ContractNodes): Promise<Side> {
  const plain = new Map<ContractCase, PlainResponse>();
  for (let round = 0; round < 2; round++) {
    for (const contractCase of cases) {
      plain.set(contractCase, await askPlainly(nodes, contractCase));
    }
  }
  return { nodes, reference: nodes, plain };
}

async function askPlainly(nodes: ContractNodes, contractCase: ContractCase): Promise<PlainResponse> {
  const target = nodes[contractCase.node];
  const client = connectTransport(plainTransport(target), target);
  try {
    return await client.ask(contractCase.path, plainRequestOf(contractCase));
  } finally {
    client.close();
  }
}

interface Difference extends Comparison {
  readonly title: string;
}

/** Compares many cases concurrently, and returns the differences, up to a readable number. */
async function differing<T>(items: readonly T[], compare: (item: T) => Promise<Comparison>): Promise<T[]> {
  const waiting = [...items];
  const found: T[] = [];
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && found.length < maxShown; item = waiting.shift()) {
      if (!isSame(await compare(item).catch(asDifference))) {
        found.push(item);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return found;
}

const isSame = ({ expected, actual }: Comparison): boolean => isDeepStrictEqual(expected, actual);
const asDifference = (thrown: unknown): Comparison => ({ expected: "a response", actual: String(thrown) });

/** Repeats the differing cases one at a time, so that counts of requests in flight are equal. Returns the rest. */
async function explain<T>(
  items: readonly T[],
  describeItem: (item: T) => string,
  compareAgain: (item: T) => Promise<Comparison>,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const item of items) {
    const comparison = await compareAgain(item).catch(asDifference);
    if (!isSame(comparison)) {
      differences.push({ title: describeItem(item), ...excerpt(comparison) });
    }
  }
  return differences;
}

const shownBefore = 100;
const shownAfter = 300;

/** Returns both sides around their first difference, because some are long. */
function excerpt({ expected, actual }: Comparison): Comparison {
  const [left, right] = [JSON.stringify(expected), JSON.stringify(actual)];
  const at = Array.from(left).findIndex((character, i) => character !== right[i]);
  const [from, to] = [Math.max(0, at - shownBefore), at + shownAfter];
  return { expected: left.slice(from, to), actual: right.slice(from, to) };
}

function caseOf(protocol: Protocol): (contractCase: ContractCase) => boolean {
  if (protocol === "Connect GET") {
    return (contractCase) => isRead(contractCase.method) && fitsInPath(contractCase);
  }
  return ({ request }) => protocol === "plain JSON" || request !== undefined;
}

function fitsInPath({ method, request }: ContractCase): boolean {
  if (request === undefined) {
    return false;
  }
  const json = toJsonString(method.input, create(method.input, request as never));
  return encodeURIComponent(json).length < maxPathCharacters;
}

export function isRead(method: DescMethod): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

function sideOf(name: TransportName): "cleartext" | "tls" {
  return transports[name].alpn === undefined ? "cleartext" : "tls";
}

/** Selects one case for each combination of node, HTTP method, status, content type and signer. */
function oneOfEachKind(all: readonly ContractCase[], { plain }: Side): ContractCase[] {
  const kinds = new Map<string, ContractCase>();
  for (const contractCase of all) {
    const { status, headers } = plain.get(contractCase)!;
    const kind = [
      contractCase.node,
      contractCase.httpMethod,
      status,
      headers["content-type"],
      contractCase.caller !== undefined,
    ].join();
    kinds.set(kind, kinds.get(kind) ?? contractCase);
  }
  return [...kinds.values()];
}

/** Declares the tests of a cell: all cases or one of each kind, by `scope`, and all streams of the protocol. */
export function testCell(
  test: TestFn<Sides>,
  name: TransportName,
  protocol: Protocol,
  scope: "all" | "kinds" = homeOf(protocol) === name ? "all" : "kinds",
): void {
  const [title, minCases] = scope === "all" ? ["every contract case", 100] : ["one contract case of each kind", 10];
  test.serial(`${title}, ${protocol} over ${name}`, async (t) => {
    t.timeout(5 * 60_000);
    const { nodes, reference, plain } = t.context[sideOf(name)]!;
    const clients = {
      member: connectProtocol(protocol, name, nodes.member),
      newcomer: connectProtocol(protocol, name, nodes.newcomer),
    };
    t.teardown(() => Object.values(clients).forEach((client) => void client.close()));
    const possible = cases.filter(caseOf(protocol));
    const applicable = scope === "all" ? possible : oneOfEachKind(possible, t.context[sideOf(name)]!);
    t.true(applicable.length > minCases, `only ${applicable.length} cases`);
    const compare = (contractCase: ContractCase, response: PlainResponse) =>
      clients[contractCase.node].compare(contractCase, response);
    const found = await differing(applicable, (contractCase) => compare(contractCase, plain.get(contractCase)!));
    t.deepEqual(
      await explain(found, describe, async (contractCase) =>
        compare(contractCase, await askPlainly(reference, contractCase)),
      ),
      [],
    );
  });

  if (protocol === "plain JSON") {
    test.serial(`every stream, plain JSON over ${name}`, async (t) => {
      const { member } = t.context[sideOf(name)]!.nodes;
      const client = connectTransport(name, member);
      t.teardown(() => client.close());
      const routed = streams.filter(({ stream }) => readHttpRoutes(stream)[0] !== undefined);
      t.deepEqual(
        routed.filter(({ plain }) => plain === undefined),
        [],
      );
      for (const { stream, plain } of routed) {
        const { stream: path, unary: unaryPath, ofMessage, ofResponse } = plain!;
        for (const accept of [undefined, "text/event-stream", "application/jsonl", "application/x-ndjson"]) {
          const controller = new AbortController();
          const request: PlainRequest = accept === undefined ? {} : { headers: { accept } };
          const { status, headers: responseHeaders, body } = await client.open(path, request, controller.signal);
          const isLines = accept?.startsWith("application/") === true;
          t.is(status, 200);
          t.is(
            responseHeaders["content-type"],
            `${isLines ? "application/jsonl" : "text/event-stream"}; charset=utf-8`,
          );
          t.is(responseHeaders["x-accel-buffering"], "no");
          t.is(responseHeaders["cache-control"], "private, no-store");
          const message = await takeMessage(body, isLines ? "\n" : "\n\n");
          controller.abort();
          const data = message.replace(/^(event|id): .*\n/gm, "").replace(/^data: /, "");
          t.deepEqual(
            ofMessage(mask(data)),
            ofResponse(mask((await client.ask(unaryPath)).text)),
            `${stream.name}, ${accept}`,
          );
        }
      }
    });
  }

  if (protocol === "plain JSON" || protocol === "Connect GET") {
    test.serial(`responds with 304 to a matching entity tag, ${protocol} over ${name}`, async (t) => {
      const { nodes } = t.context[sideOf(name)]!;
      const client = connectTransport(name, nodes.member);
      t.teardown(() => client.close());
      const pathOf = protocol === "plain JSON" ? ({ path }: ContractCase) => path : connectPathOf;
      const cacheable = cases
        .filter(
          (contractCase) =>
            contractCase.node === "member" && contractCase.httpMethod === "GET" && contractCase.caller === undefined,
        )
        .filter((contractCase) => protocol === "plain JSON" || fitsInPath(contractCase))
        .filter((contractCase) => getOption(contractCase.method, caching) !== Caching.UNSPECIFIED);
      let notModified = 0;
      for (const path of (scope === "all" ? cacheable : oneOfEachKind(cacheable, t.context[sideOf(name)]!)).map(
        pathOf,
      )) {
        const response = await client.ask(path);
        const { etag } = response.headers;
        if (etag === undefined) {
          continue;
        }
        for (const method of protocol === "plain JSON" ? ["GET", "HEAD", "GET"] : ["GET", "GET"]) {
          const again = await client.ask(path, { method, headers: { "if-none-match": `"other", ${etag}` } });
          // An authority may have signed a newer head meanwhile.
          if (again.headers.etag === etag) {
            t.is(again.status, 304, path);
            t.is(again.text, "");
            t.is(again.headers["content-type"], undefined);
            t.is(again.headers["cache-control"], response.headers["cache-control"]);
            t.is(again.headers["access-control-allow-origin"], "*");
            notModified++;
          }
        }
        t.is((await client.ask(path, { headers: { "if-none-match": 'W/"0.other"' } })).status, 200, path);
        if (protocol === "plain JSON") {
          const head = await client.ask(path, { method: "HEAD" });
          t.is(head.status, 200);
          t.is(head.headers["cache-control"], response.headers["cache-control"]);
          t.is(head.text, "");
        }
      }
      t.true(notModified > (scope === "all" ? 40 : 0), `only ${notModified} responses`);
    });
  }

  if ((streaming as readonly Protocol[]).includes(protocol)) {
    test.serial(`rules of streams, ${protocol} over ${name}`, async (t) => {
      const client = connectTransport(name, t.context[sideOf(name)]!.nodes.member);
      t.teardown(() => client.close());
      await checkStreamRules(t, protocol as (typeof streaming)[number], client);
    });

    test.serial(`every stream, ${protocol} over ${name}`, async (t) => {
      const client = connectRpc(protocol as AnyRpcProtocol, name, t.context[sideOf(name)]!.nodes.member);
      t.teardown(() => client.close());
      for (const streamCase of streams) {
        const controller = new AbortController();
        const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)]);
        const { stream, request, unary, unaryRequests } = streamCase;
        const messages = await take(client.stream(stream, request, signal), unaryRequests.length);
        controller.abort();
        const responses = await Promise.all(unaryRequests.map((unaryRequest) => client.call(unary, unaryRequest)));
        t.deepEqual(
          messages.map((message) => comparable(streamCase, message, "ofMessage")),
          responses.map((message) => comparable(streamCase, message, "ofResponse")),
          stream.name,
        );
      }
    });
  }
}

function connectPathOf({ method, request }: ContractCase): string {
  const json = toJsonString(method.input, create(method.input, request as never));
  return `/${method.parent.typeName}/${method.name}?connect=v1&encoding=json&message=${encodeURIComponent(json)}`;
}

/** Returns the first message of a body, up to `end`. */
async function takeMessage(body: AsyncIterable<Buffer>, end: string): Promise<string> {
  let text = "";
  for await (const piece of body) {
    text += piece.toString();
    if (text.includes(end)) {
      break;
    }
  }
  return text.split(end)[0]!;
}

async function take(stream: AsyncIterable<Message>, count: number): Promise<Message[]> {
  const messages: Message[] = [];
  for await (const message of stream) {
    messages.push(message);
    if (messages.length === count) {
      break;
    }
  }
  return messages;
}

/** Returns the common part of a stream message and a unary response. */
function comparable({ stream, common }: StreamCase, message: Message, of: "ofMessage" | "ofResponse"): string {
  const json =
    common === undefined
      ? stream.output.fields
          .map((field) => String((message as unknown as Record<string, unknown>)[field.localName]))
          .join()
      : referenceJson(common.desc, common[of](message));
  return mask(json);
}

const requests = Object.entries(surface);

/** Declares the tests of requests for no rpc over a transport. */
export function testSurface(test: TestFn<Sides>, name: TransportName): void {
  test.serial(`pages, preflights and unknown paths, over ${name}`, async (t) => {
    const { nodes, reference } = t.context[sideOf(name)]!;
    for (const node of ["member", "newcomer"] satisfies NodeName[]) {
      const [target, other] = [nodes[node], reference[node]];
      const [client, plain] = [connectTransport(name, target), connectTransport(plainTransport(other), other)];
      t.teardown(() => [client, plain].forEach((connected) => connected.close()));
      const compare = async ([, [path, request]]: (typeof requests)[number]): Promise<Comparison> =>
        comparePlainResponses(await plain.ask(path, request), await client.ask(path, request));
      const found = await differing(requests, compare);
      t.deepEqual(await explain(found, ([title]) => title, compare), []);
    }
  });
}
