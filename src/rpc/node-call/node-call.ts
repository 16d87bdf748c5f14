/**
 * The node-call interface, which existing clients speak: `ping`, and `nodeCall` with the name of a message. Each call is
 * made of rpcs, and gives what those give.
 */
import { createOneAtATime } from "../../base/one-at-a-time.js";
import { maxListBytes } from "../../base/answer-budget.js";
import { nextTurn } from "../../base/yielding.js";
import { Failure } from "../errors.js";
import type { AnswerNodeCall, CallByName } from "../json-rpc/node-call-envelope.js";

type Data = Readonly<Record<string, unknown>>;
type Answer = (call: CallByName, data: Data) => Promise<string>;

/** Most blocks of one getBlocks. */
const maxBlocks = 50;

/** An rpc with these parameters of the message's data: the rpc's name for each, and how the message calls it. */
function rpc(name: string, names: Readonly<Record<string, string>> = {}): Answer {
  return (call, data) =>
    call(
      name,
      Object.fromEntries(Object.entries(names).flatMap(([to, from]) => (from in data ? [[to, data[from]]] : []))),
    );
}

/** One member of what an rpc answers. */
function pick(answer: Answer, member: string): Answer {
  return async (call, data) =>
    JSON.stringify((JSON.parse(await answer(call, data)) as Record<string, unknown>)[member] ?? null);
}

const head = rpc("chain.getHead");
const program = { storageAddress: "storageAddress" };

const messages = new Map<string, Answer>(
  Object.entries({
    getPeerlist: rpc("info.listPeers", { offset: "offset" }),
    getPeerIdentity: rpc("info.getPublicKey"),
    getLastBlockNumber: pick(head, "number"),
    getLastBlockHash: pick(head, "hash"),
    getBlocks: (call, data) => inTurn(() => listBlocks(call, data)),
    getBlockByNumber: rpc("chain.getBlock", { number: "blockNumber" }),
    getBlockByHash: rpc("chain.getBlockByHash", { hash: "hash" }),
    getTxByHash: rpc("chain.getTransaction", { hash: "hash" }),
    getMempool: pick(rpc("chain.listPendingTransactions"), "transactions"),
    getNetworkInfo: describeNetwork,
    getStorageProgram: rpc("storage.getProgram", program),
    getStorageProgramAll: rpc("storage.getProgramData", program),
    getStorageProgramFields: rpc("storage.listFields", program),
    getStorageProgramValue: rpc("storage.getField", { ...program, field: "key" }),
    getStorageProgramItem: rpc("storage.getFieldItem", { ...program, field: "key", index: "index" }),
    hasStorageProgramField: rpc("storage.hasField", { ...program, field: "key" }),
    getStorageProgramFieldType: rpc("storage.getFieldType", { ...program, field: "key" }),
    getStorageProgramsByOwner: rpc("storage.listProgramsByOwner", { owner: "owner", limit: "limit", offset: "offset" }),
    searchStoragePrograms: rpc("storage.searchPrograms", {
      q: "query",
      exact: "exactMatch",
      limit: "limit",
      offset: "offset",
    }),
    "tlsnotary.getInfo": rpc("attestation.getAttestationInfo"),
  }),
);

/** Names of the messages. */
export const nodeCallMessages: readonly string[] = [...messages.keys()];

export const answerNodeCall: AnswerNodeCall = async (method, params, call) => {
  if (method === "ping") {
    return '"pong"';
  }
  const [request] = Array.isArray(params) ? (params as unknown[]) : [];
  if (method !== "nodeCall" || typeof request !== "object" || request === null) {
    return undefined;
  }
  const { message, data } = request as { message?: unknown; data?: unknown };
  const answer = messages.get(String(message));
  return await answer?.(call, typeof data === "object" && data !== null ? (data as Data) : {});
};

/** However many lists of blocks are asked for at once, one is put together at a time. */
const inTurn = createOneAtATime();

/**
 * Blocks from `start` on, or the newest for 0 and "latest", in their order; as many as one answer holds, and at least
 * one. Of those from a number on the last ones are left out then, of the newest the first ones.
 */
async function listBlocks(call: CallByName, { start, limit }: Data): Promise<string> {
  const count = Math.min(typeof limit === "number" && limit > 0 ? Math.floor(limit) : maxBlocks, maxBlocks);
  const newest = (JSON.parse(await head(call, {})) as { number: number }).number;
  const from = typeof start === "number" && start > 0 ? start : undefined;
  const first = from ?? Math.max(1, newest - count + 1);
  const last = from === undefined ? newest : Math.min(from + count - 1, newest);
  const numbers = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const blocks =
    from === undefined ? (await readWhatFits(call, numbers.reverse())).reverse() : await readWhatFits(call, numbers);
  return `[${blocks.join(",")}]`;
}

/** The first of these blocks, as many as one answer holds. */
async function readWhatFits(call: CallByName, numbers: readonly number[]): Promise<string[]> {
  const blocks: string[] = [];
  let bytes = 0;
  for (const number of numbers) {
    try {
      const block = await call("chain.getBlock", { number });
      bytes += Buffer.byteLength(block);
      if (blocks.length > 0 && bytes > maxListBytes) {
        break;
      }
      blocks.push(block);
    } catch (error) {
      // By itself it is refused, with the reason.
      if (blocks.length > 0 && error instanceof Failure && error.reason === "ANSWER_TOO_LARGE") {
        break;
      }
      throw error;
    }
    if (bytes >= maxListBytes) {
      break;
    }
    await nextTurn();
  }
  return blocks;
}

async function describeNetwork(call: CallByName): Promise<string> {
  const { peerlist, ...info } = JSON.parse(await call("info.getInfo", {})) as { peerlist: unknown[] };
  const { number, hash, genesisHash } = JSON.parse(await head(call, {})) as Data;
  return JSON.stringify({ ...info, peers: peerlist.length, block: number, blockHash: hash, genesisHash });
}
