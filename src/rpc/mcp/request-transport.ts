/**
 * MCP transport of one HTTP request. Each request is complete in itself, so the response is JSON, and needs no event
 * stream. IDs stay outside of the SDK, which cannot represent all of them.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/sdk/types.js";
import { isJsonObject, type Json, type JsonMembers, toPlainJson } from "../../base/text/parse-json.js";
import { RpcError } from "../errors.js";
import { idOf, type IdText, membersOf } from "../json-rpc/request.js";

const maxBatch = 100;

/** Requests that get a response. For the SDK, the ID of each is its position. */
export interface McpRequests {
  readonly messages: readonly JSONRPCMessage[];
  /** IDs as sent. */
  readonly ids: readonly IdText[];
  readonly isBatch: boolean;
}

/**
 * Reads the requests of a body. Omits notifications and responses, which have no effect without a session.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function readMcpRequests(json: Json): McpRequests {
  const isBatch = Array.isArray(json);
  const sent = isBatch ? (json as readonly Json[]) : [json];
  if (sent.length === 0 || sent.length > maxBatch) {
    throw new RpcError("INVALID_REQUEST", `A batch must have 1 to ${maxBatch} messages, not ${sent.length}.`);
  }
  const messages: JSONRPCMessage[] = [];
  const ids: IdText[] = [];
  for (const item of sent) {
    const id = idOf(item);
    const message = readMessage(membersOf(item), id === undefined ? undefined : messages.length);
    if (message === undefined || id === "null") {
      throw new RpcError("INVALID_REQUEST", "A message must be one of JSON-RPC 2.0, whose id is a number or text.");
    }
    if (id !== undefined && "method" in message) {
      messages.push(message);
      ids.push(id);
    }
  }
  return { messages, ids, isBatch };
}

function readMessage({ id: _, params, ...members }: Partial<JsonMembers>, id: number | undefined) {
  return JSONRPCMessageSchema.safeParse({
    ...(toPlainJson(members as JsonMembers) as object),
    ...(params !== undefined && { params: readParams(params) }),
    ...(id !== undefined && { id }),
  }).data;
}

/** Returns parameters for the SDK. The arguments of a tool keep their numbers; null means that there are none. */
function readParams(params: Json): unknown {
  if (!isJsonObject(params)) {
    return toPlainJson(params);
  }
  const { arguments: args = null, ...others } = params;
  return { ...(toPlainJson(others) as object), ...(args !== null && { arguments: args }) };
}

/**
 * Rejects a version of the protocol that the SDK does not support.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function checkProtocolVersion(version: string | undefined): void {
  if (version !== undefined && !SUPPORTED_PROTOCOL_VERSIONS.includes(version)) {
    const known = SUPPORTED_PROTOCOL_VERSIONS.join(", ");
    throw new RpcError("INVALID_REQUEST", `MCP-Protocol-Version must be one of ${known}.`);
  }
}

/** Passes the requests of one body to a session, and collects the responses. */
export class RequestTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onclose?: Transport["onclose"];
  readonly #responses = new Map<number, string>();
  #onComplete: ((text: string | undefined) => void) | undefined;

  constructor(private readonly requests: McpRequests) {}

  async start(): Promise<void> {
    await Promise.resolve();
  }

  /** Resolves with the JSON text of the responses; undefined without requests, or if the transport is closed. */
  async run(): Promise<string | undefined> {
    return await new Promise((resolve) => {
      this.#onComplete = resolve;
      this.#checkComplete();
      this.requests.messages.forEach((message) => this.onmessage?.(message));
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { id, ...members } = message as { readonly id?: number };
    const sentId = id === undefined ? undefined : this.requests.ids[id];
    if (sentId !== undefined) {
      this.#responses.set(id!, `${JSON.stringify(members).slice(0, -1)},"id":${sentId}}`);
      this.#checkComplete();
    }
    await Promise.resolve();
  }

  #checkComplete(): void {
    const { ids, isBatch } = this.requests;
    if (this.#responses.size === ids.length) {
      const [first, ...others] = this.#responses.values();
      this.#onComplete?.(first === undefined || !isBatch ? first : `[${[first, ...others].join(",")}]`);
    }
  }

  async close(): Promise<void> {
    this.#onComplete?.(undefined);
    this.onclose?.();
    await Promise.resolve();
  }
}
