/** Asks nodes, as their users do, and tells the model what they answer. */
import { createGatehouse } from "gatehouse-client";
import { setTimeout as sleep } from "node:timers/promises";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { errorMessage } from "../../../src/base/errors/error-message.js";
import { rulesOf } from "../../../test/helpers/chain/transactions.js";
import type { Answer, Fate, Head } from "../model/history.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";
import { readSeenBlock } from "./read-block.js";

/** What a node says of itself. */
export interface Health {
  readonly statusCode: number;
  readonly status: string;
  readonly accepting: boolean;
  readonly pending: number | null;
}

/** Asks nodes. What is not answered, or with trouble of the node, rejects. */
export interface CampaignClient {
  submit(node: CampaignNode, transaction: Transaction): Promise<Answer>;
  head(node: CampaignNode): Promise<Head>;
  fate(node: CampaignNode, hash: string): Promise<void>;
  document(node: CampaignNode, address: string): Promise<void>;
  leaves(node: CampaignNode): Promise<string>;
  health(node: CampaignNode): Promise<Health>;
  /** Reads a node's blocks from this number on, and checks each as a stranger would. */
  blocks(node: CampaignNode, from: number): Promise<number>;
}

const patienceMs = 5_000;
const ok = 200;

/** Builds it. */
export function createClient(model: Model, network: string): CampaignClient {
  const rules = rulesOf(network);

  async function ask(node: CampaignNode, path: string, body?: object): Promise<{ status: number; json: unknown }> {
    const answer = await fetch(`http://127.0.0.1:${node.port}${path}`, {
      signal: AbortSignal.timeout(patienceMs),
      ...(body !== undefined && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    return { status: answer.status, json: await answer.json() };
  }

  /** An answer that is the node's own word, and not trouble. */
  async function askWell(node: CampaignNode, path: string, ...more: readonly number[]) {
    const { status, json } = await ask(node, path);
    if (status !== ok && !more.includes(status)) {
      throw new Error(`${node.name} answers ${path} with ${status}: ${JSON.stringify(json).slice(0, 300)}`);
    }
    return { status, json };
  }

  async function head(node: CampaignNode): Promise<Head> {
    const asked = model.asking(node.index);
    const newest = (await askWell(node, "/chain/head")).json as Head;
    model.sawHead(asked, newest);
    return newest;
  }

  return {
    head,
    async submit(node, { body, signature }) {
      const transaction = {
        body: Buffer.from(body).toString("base64"),
        signature: Buffer.from(signature).toString("base64"),
      };
      try {
        const { status } = await ask(node, "/chain/transactions", { transaction });
        return status === ok ? "taken" : status >= 500 || status === 429 ? "refused for now" : "refused";
      } catch {
        return "unknown";
      }
    },
    async fate(node, hash) {
      const { number } = await head(node);
      const asked = model.asking(node.index);
      const { status, json } = await askWell(node, `/chain/transactions/${hash}`, 404);
      model.sawFate(asked, number, hash, status === ok ? fateOf(json as FateJson) : { status: "not found" });
    },
    async document(node, address) {
      const before = await head(node);
      const asked = model.asking(node.index);
      const { status, json } = await askWell(node, `/storage-program/${address}/all`, 404, 410);
      const document = status === ok ? (json as { data: unknown }).data : undefined;
      const after = await head(node);
      model.sawDocument(asked, [before.number, after.number], address, document);
    },
    async leaves(node) {
      const { leafCount, rootHash } = (await askWell(node, "/zk/merkle-root")).json as LeavesJson;
      model.sawLeaves(node.index, leafCount);
      return rootHash;
    },
    async health(node) {
      const { status, json } = await ask(node, "/health");
      const body = json as { status: string; accepting: boolean; mempool_size: number | null };
      return { statusCode: status, status: body.status, accepting: body.accepting, pending: body.mempool_size };
    },
    async blocks(node, from) {
      const { chain } = createGatehouse(`http://127.0.0.1:${node.port}`);
      let number = from - 1;
      for await (const { block } of chain.listBlocks({ fromNumber: BigInt(from) }, { timeoutMs: 60_000 })) {
        number++;
        try {
          const read = readSeenBlock(block!, rules);
          if (read.number !== number) {
            throw new Error(`It is block ${read.number}.`);
          }
          model.sawBlock(node.index, read);
        } catch (error) {
          model.find("served wrong", `Block ${number} of ${node.name} cannot be right: ${errorMessage(error)}`);
          return number;
        }
      }
      return number;
    },
  };
}

interface LeavesJson {
  readonly leafCount: number;
  readonly rootHash: string;
}

interface FateJson {
  readonly status: string;
  readonly blockNumber: number;
  readonly reason: string;
}

function fateOf({ status, blockNumber, reason }: FateJson): Fate {
  switch (status) {
    case "included":
      return { status, block: blockNumber };
    case "rejected":
      return { status, reason };
    default:
      return { status: "pending" };
  }
}

/**
 * Waits until something holds; gives whether it did. What is not answered does not hold.
 *
 * @param ms how long without progress.
 * @param progress grows while there is some.
 */
export async function holdsWithin(
  ms: number,
  condition: () => Promise<boolean>,
  progress: () => number = () => 0,
): Promise<boolean> {
  let sinceMs = performance.now();
  let most = progress();
  while (!(await condition().catch(() => false))) {
    const now = performance.now();
    if (progress() > most) {
      most = progress();
      sinceMs = now;
    } else if (now - sinceMs > ms) {
      return false;
    }
    await sleep(100);
  }
  return true;
}
