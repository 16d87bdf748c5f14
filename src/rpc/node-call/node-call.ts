/**
 * Node-call interface of existing clients: `ping`, and `nodeCall` with the name of a message. Rpcs produce the
 * responses.
 */
import { type Json, toPlainJson } from "../../base/text/parse-json.js";
import { RpcError } from "../errors.js";
import type { CallByName, HandleNodeCall } from "../json-rpc/json-rpc.js";
import { NodeCallError } from "../json-rpc/json-rpc.js";
import { describeBlock, listBlocks, readCount, withMembers } from "./blocks.js";
import { listHistory, listLatest, listPending, maxListed, readStatus, readTransaction } from "./transactions.js";

/** Arguments by their parameter names. */
type Arguments = Readonly<Record<string, unknown>>;

interface Argument {
  /** Names in client requests; the first that is present counts. A dot separates a member from its parent. */
  readonly names: readonly string[];
  /** True if the message is rejected without this argument, because a default could be mistaken for the result. */
  readonly isRequired: boolean;
}

interface Message {
  readonly parameters: Readonly<Record<string, Argument>>;
  readonly run: (call: CallByName, args: Arguments) => Promise<string>;
}

const required = (...names: string[]): Argument => ({ names, isRequired: true });
const optional = (...names: string[]): Argument => ({ names, isRequired: false });

/** Creates a message that returns the response of an rpc, optionally edited. */
function rpc(name: string, parameters: Message["parameters"] = {}, edit = (text: string): string => text): Message {
  return { parameters, run: async (call, args) => edit(await call(name, args)) };
}

/** Returns a function that extracts one member of a response. */
const pick =
  (member: string) =>
  (text: string): string =>
    JSON.stringify((JSON.parse(text) as Arguments)[member] ?? null);

/**
 * Creates a function that lists programs, by default as many as possible: clients that name no limit read no further
 * pages, and take an error for an empty list.
 */
function listPrograms(name: string): Message["run"] {
  return async (call, { limit, ...args }) =>
    pick("programs")(await call(name, { ...args, limit: readCount("limit", limit, maxListed) }));
}

const countFields = (text: string): string =>
  withMembers(text, { count: (JSON.parse(text) as { fields: unknown[] }).fields.length });

const program = { storageAddress: required("storageAddress") };
const field = { ...program, field: required("field", "key") };
const page = { limit: optional("options.limit", "limit"), offset: optional("options.offset", "offset") };

const messages: Readonly<Record<string, Message>> = {
  getPeerlist: rpc("info.listPeers", { offset: optional("offset") }),
  getPeerIdentity: rpc("info.getPublicKey"),
  getNetworkInfo: { parameters: {}, run: describeNetwork },
  getLastBlockNumber: rpc("chain.getHead", {}, pick("number")),
  getLastBlockHash: rpc("chain.getHead", {}, pick("hash")),
  getBlocks: { parameters: { start: optional("start"), limit: optional("limit") }, run: listBlocks },
  getBlockByNumber: rpc("chain.getBlock", { number: required("blockNumber", "number") }, describeBlock),
  getBlockByHash: rpc("chain.getBlockByHash", { hash: required("hash", "blockHash") }, describeBlock),
  getTxByHash: { parameters: { hash: required("hash", "txHash") }, run: readTransaction },
  getTransactionStatus: { parameters: { hash: required("hash", "txHash") }, run: readStatus },
  getTransactions: { parameters: { start: optional("start"), limit: optional("limit") }, run: listLatest },
  getTransactionHistory: {
    parameters: {
      ...{ sender: required("address"), type: optional("type") },
      ...{ start: optional("start"), limit: optional("limit") },
    },
    run: listHistory,
  },
  getMempool: { parameters: {}, run: listPending },
  getAddressNonce: rpc("chain.getSender", { address: required("address") }, pick("nonce")),
  getStorageProgram: rpc("storage.getProgram", program),
  // Existing clients read the same members, such as the owner, from both.
  getStorageProgramAll: rpc("storage.getProgram", program),
  getStorageProgramFields: rpc("storage.listFields", program, countFields),
  getStorageProgramValue: rpc("storage.getField", field),
  getStorageProgramItem: { parameters: { ...field, index: required("index") }, run: readItem },
  hasStorageProgramField: rpc("storage.hasField", field),
  getStorageProgramFieldType: rpc("storage.getFieldType", field),
  getStorageProgramsByOwner: {
    parameters: { owner: required("owner"), ...page },
    run: listPrograms("storage.listProgramsByOwner"),
  },
  searchStoragePrograms: {
    parameters: { q: required("query"), exact: optional("options.exactMatch", "exactMatch"), ...page },
    run: listPrograms("storage.searchPrograms"),
  },
  "tlsnotary.getInfo": rpc("attestation.getAttestationInfo"),
};

export const nodeCallMessages: readonly string[] = Object.keys(messages);

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
  const message = Object.hasOwn(messages, name) ? messages[name] : undefined;
  if (message === undefined) {
    throw notImplemented("message", name);
  }
  return await message.run(call, readArguments(name, message, data));
};

const noBalances = "This network has no balances. getAddressNonce returns the nonce of an address.";
const otherForm =
  "This network does not accept this form of transactions. Submit the network's form with POST /chain/transactions.";
/** Members from which existing clients read that a transaction is not valid, and why. */
const notValid = { message: otherForm, data: { valid: false, message: otherForm } };

/**
 * Methods and messages of existing clients whose errors need more members. These clients read data from errors, too:
 * without a balance they show 0, and without data.valid they fail with a TypeError that hides the reason.
 */
const rejections: Readonly<Record<string, { readonly error: string; readonly members: object }>> = {
  // A text makes clients fail, since it is no number, and is a part of their error.
  getAddressInfo: { error: noBalances, members: { balance: noBalances } },
  execute: { error: otherForm, members: notValid },
  sendTransaction: { error: otherForm, members: notValid },
  broadcastNativeTransaction: { error: otherForm, members: notValid },
};

function notImplemented(kind: string, name: string): RpcError {
  const rejection = Object.hasOwn(rejections, name) ? rejections[name] : undefined;
  return rejection === undefined
    ? new RpcError("NOT_IMPLEMENTED", `This node does not serve the ${kind} "${name.slice(0, maxNameLength)}".`)
    : new NodeCallError("NOT_IMPLEMENTED", rejection.error, rejection.members);
}

/**
 * Reads the arguments of a message from the data that a client sent.
 *
 * @throws RpcError INVALID_REQUEST if a required argument is missing.
 */
function readArguments(message: string, { parameters }: Message, data: unknown): Arguments {
  return Object.fromEntries(
    Object.entries(parameters).flatMap(([parameter, { names, isRequired }]) => {
      const value = names.map((name) => memberAt(data, name)).find((member) => member !== undefined && member !== null);
      if (value === undefined && isRequired) {
        throw new RpcError("INVALID_REQUEST", `${message} needs ${JSON.stringify(names[0])} in its data.`);
      }
      return value === undefined ? [] : [[parameter, value] as const];
    }),
  );
}

function memberAt(data: unknown, name: string): unknown {
  return name
    .split(".")
    .reduce<unknown>(
      (value, member) =>
        typeof value === "object" && value !== null && Object.hasOwn(value, member)
          ? (value as Arguments)[member]
          : undefined,
      data,
    );
}

/** Reads an item of a list. A negative index counts from the end: -1 is the last item. */
async function readItem(call: CallByName, { index: sent, ...args }: Arguments): Promise<string> {
  const index = toPlainJson(sent as Json);
  const fromEnd = typeof index === "number" && index < 0;
  return await call("storage.getFieldItem", {
    ...{ ...args, fromEnd, withLength: true },
    index: fromEnd ? -1 - index : index,
  });
}

async function describeNetwork(call: CallByName): Promise<string> {
  const { peerlist, ...info } = JSON.parse(await call("info.getInfo", {})) as { peerlist: unknown[] };
  const { number, hash, genesisHash } = JSON.parse(await call("chain.getHead", {})) as Arguments;
  // Forks that existing clients query. None is active or planned on this network.
  const forks = { osDenomination: { activationHeight: null, activated: false, currentHeight: number } };
  return JSON.stringify({ ...info, peers: peerlist.length, block: number, blockHash: hash, genesisHash, forks });
}
