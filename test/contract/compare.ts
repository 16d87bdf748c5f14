/**
 * The protocols, each of which runs every contract case over one transport, its home, and one case of each kind over the
 * others; and the comparison of a response in a protocol with that of plain HTTP/1.1.
 */
import { create, getOption, type Message, toJson } from "@bufbuild/protobuf";
import type { IncomingHttpHeaders } from "node:http";
import { http } from "../../gen/google/api/annotations_pb.js";
import { errorCatalog, type Reason } from "../../src/rpc/errors.js";
import { areaOf } from "../../src/rpc/json-rpc/named-methods.js";
import { jsonPost, type PlainResponse } from "../helpers/wire/plain-client.js";
import { referenceJson } from "../helpers/wire/reference-json.js";
import { type AnyRpcProtocol, connectRpc, readFailure, type RpcClient } from "../helpers/wire/rpc-clients.js";
import {
  connectTransport,
  type Target,
  type TransportClient,
  type TransportName,
  transports,
} from "../helpers/wire/transports.js";
import { type ContractCase, headersOf, mask, plainRequestOf } from "./case.js";

/** Protocols with streams. */
export const streaming = [
  "Connect JSON",
  "Connect binary",
  "gRPC-Web",
  "gRPC-Web text",
  "gRPC",
  "gRPC by Connect",
] as const;
const protocols = ["plain JSON", "JSON-RPC", "Connect GET", ...streaming] as const;

/** Every protocol of clients. */
export type Protocol = (typeof protocols)[number];

/** Returns the protocols over a transport. HTTP/1.1 clients do not read the trailers of gRPC. */
export function protocolsOver(name: TransportName): Protocol[] {
  const isHttp2 = transports[name].http === "2";
  return protocols.filter((protocol) => isHttp2 || !["gRPC", "gRPC by Connect"].includes(protocol));
}

/** Returns the transport over which a protocol runs every case; not HTTP/1.1 for plain JSON, which is the reference. */
export function homeOf(protocol: Protocol): TransportName {
  const isOverHttp1 = protocol !== "plain JSON" && protocolsOver("HTTP/1.1").includes(protocol);
  return isOverHttp1 ? "HTTP/1.1" : "HTTP/2 by prior knowledge";
}

/** Actual and expected side of a comparison, which must be equal. */
export interface Comparison {
  readonly expected: unknown;
  readonly actual: unknown;
}

/** Client of one node in one protocol. */
export interface ProtocolClient {
  /** Sends the case, given its response over plain HTTP/1.1. */
  compare(contractCase: ContractCase, plain: PlainResponse): Promise<Comparison>;
  close(): unknown;
}

/** Creates the client of a protocol over a transport. */
export function connectProtocol(protocol: Protocol, name: TransportName, target: Target): ProtocolClient {
  if (protocol === "plain JSON" || protocol === "JSON-RPC") {
    const client = connectTransport(name, target);
    return {
      compare: async (contractCase, plain) =>
        protocol === "JSON-RPC"
          ? await compareJsonRpc(client, contractCase, plain)
          : comparePlainResponses(plain, await client.ask(contractCase.path, plainRequestOf(contractCase))),
      close: () => client.close(),
    };
  }
  const client = connectRpc(protocol satisfies AnyRpcProtocol, name, target);
  return {
    compare: (contractCase, plain) =>
      compareRpc(client, contractCase, plain, !["Connect JSON", "Connect GET"].includes(protocol)),
    close: () => client.close(),
  };
}

/** Returns two responses without the values that differ between requests or connections. */
export function comparePlainResponses(expected: PlainResponse, actual: PlainResponse): Comparison {
  return { expected: comparable(expected), actual: comparable(actual) };
}

const connectionHeaders = ["connection", "keep-alive", "transfer-encoding", "date"];

function comparable({ status, headers, text }: PlainResponse) {
  return { status, headers: stableHeaders(headers, text), text: mask(text) };
}

/** Returns the headers that are equal in every response. A length that is correct for its body counts as equal. */
function stableHeaders(headers: IncomingHttpHeaders, text: string): Record<string, unknown> {
  const compared = Object.entries(headers)
    .filter(([name]) => !connectionHeaders.includes(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const varying: Record<string, string> = {
    "x-request-id": headers["x-request-id"] as string,
    "content-length": String(Buffer.byteLength(text)),
  };
  return Object.fromEntries(compared.map(([name, value]) => [name, varying[name] === value ? `<${name}>` : value]));
}

async function compareJsonRpc(
  client: TransportClient,
  contractCase: ContractCase,
  plain: PlainResponse,
): Promise<Comparison> {
  const { method, request } = contractCase;
  // Empty texts and zeros are sent explicitly if the case sets them.
  const params = toJson(method.input, create(method.input, request as never), { alwaysEmitImplicit: true });
  const call = { jsonrpc: "2.0", id: 1, method: `${areaOf(method.parent)}.${method.localName}`, params };
  const { text } = await client.ask("/", jsonPost(call, headersOf(contractCase)));
  const failure = failureOf(plain);
  if (failure === undefined) {
    return { expected: `{"jsonrpc":"2.0","id":1,"result":${mask(plain.text)}}`, actual: mask(text) };
  }
  const { error } = JSON.parse(text) as { error?: { message: string; data?: { reason: string } } };
  return {
    expected: { message: failure.error, reason: failure.errorCode },
    actual: { message: error?.message, reason: error?.data?.reason },
  };
}

/** @param isBinary true if errors name fields by their proto names. */
async function compareRpc(
  client: RpcClient,
  contractCase: ContractCase,
  plain: PlainResponse,
  isBinary: boolean,
): Promise<Comparison> {
  const plainFailure = failureOf(plain);
  const failure =
    plainFailure && isBinary
      ? { ...plainFailure, error: withProtoName(plainFailure.error, contractCase) }
      : plainFailure;
  const expected =
    failure === undefined ? mask(plain.text) : { ...failure, code: errorCatalog[failure.errorCode as Reason].grpcCode };
  try {
    const response = await client.call(contractCase.method, contractCase.request!, headersOf(contractCase));
    return { expected, actual: mask(bodyOf(contractCase, response)) };
  } catch (thrown) {
    const { code, message, reason } = readFailure(thrown);
    return { expected, actual: { success: false, error: message, errorCode: reason, code } };
  }
}

/** Replaces the JSON name of a field at the start of a message by its proto name. */
function withProtoName(message: string, { method }: ContractCase): string {
  const [first = "", ...rest] = message.split(" ");
  const field = method.input.fields.find(({ jsonName }) => jsonName === first);
  return [field?.name ?? first, ...rest].join(" ");
}

interface PlainFailure {
  readonly success: false;
  readonly error: string;
  readonly errorCode: string;
}

/** Returns the error of a plain HTTP response; undefined for a regular body with any status. */
function failureOf({ status, text }: PlainResponse): PlainFailure | undefined {
  const body = JSON.parse(text) as Partial<PlainFailure> | null;
  return status >= 400 && body?.success === false ? (body as PlainFailure) : undefined;
}

/** Encodes a response message as plain JSON, by reflection. */
function bodyOf({ method }: ContractCase, response: Message): string {
  const { responseBody } = getOption(method, http);
  const json = referenceJson(method.output, response);
  if (responseBody === "") {
    return json;
  }
  const field = method.output.fields.find(({ name }) => name === responseBody)!;
  const start = `{${JSON.stringify(field.jsonName)}:`;
  return json.slice(start.length, -1);
}
