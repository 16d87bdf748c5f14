/**
 * Node-call interface of existing clients: `ping`, and `nodeCall` with the name of a message. Rpcs produce the
 * responses.
 */
import { RpcError } from "../errors.js";
import type { HandleNodeCall } from "../json-rpc/node-call-envelope.js";
import { messages, readArguments } from "./messages.js";

export const nodeCallMessages: readonly string[] = [...messages.keys()];

/** Limit on the length of a name that an error repeats, in characters. */
const maxNameLength = 80;

export const handleNodeCall: HandleNodeCall = async (method, params, call) => {
  if (method === "ping") {
    return '"pong"';
  }
  if (method !== "nodeCall") {
    throw notImplemented("method", method);
  }
  const [request] = Array.isArray(params) ? (params as unknown[]) : [];
  const { message: name, data } = (request ?? {}) as { message?: unknown; data?: unknown };
  if (typeof name !== "string") {
    throw new RpcError("INVALID_REQUEST", 'A nodeCall must have the params [{"message": NAME, "data": {…}}].');
  }
  const message = messages.get(name);
  if (message === undefined) {
    throw notImplemented("message", name);
  }
  return await message.run(call, readArguments(name, message, data));
};

function notImplemented(kind: string, name: string): RpcError {
  return new RpcError("NOT_IMPLEMENTED", `This node does not serve the ${kind} "${name.slice(0, maxNameLength)}".`);
}
