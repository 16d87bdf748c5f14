/** Sends requests to nodes over HTTP, and records the responses in the model. */
import { createGatehouse } from "gatehouse-client";
import { setTimeout as sleep } from "node:timers/promises";
import type { Block, Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { sha256 } from "../../../src/base/crypto/hash.js";
import { type ChainRules, verifyHeader, verifyTransaction } from "../../../src/chain/transactions/transaction.js";
import { errorMessage } from "../../../src/base/errors/error-message.js";
import { rulesOf } from "../../../test/helpers/chain/transactions.js";
import type { SubmitOutcome, ReportedStatus, Head, VerifiedBlock } from "../model/history.js";
import type { Model } from "../model/model.js";
import type { CampaignNode } from "../nodes/node.js";

/** Health of a node. */
export interface Health {
  readonly statusCode: number;
  readonly status: string;
  readonly accepting: boolean;
  readonly pending: number | null;
}

/** Client of the nodes. */
export type CampaignClient = ReturnType<typeof createClient>;

const timeoutMs = 5_000;
const ok = 200;

/** Creates a client whose methods reject without a response, or if the response is an error of the node. */
export function createClient(model: Model, network: string) {
  const rules = rulesOf(network);

  async function request(node: CampaignNode, path: string, body?: object): Promise<{ status: number; json: unknown }> {
    const response = await fetch(`http://127.0.0.1:${node.port}${path}`, {
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    return { status: response.status, json: await response.json() };
  }

  /** Sends a GET request. Throws an Error if the status is neither 200 nor one of the accepted codes. */
  async function requestOk(node: CampaignNode, path: string, ...acceptedCodes: readonly number[]) {
    const { status, json } = await request(node, path);
    if (status !== ok && !acceptedCodes.includes(status)) {
      throw new Error(`${node.name} answers ${path} with ${status}: ${JSON.stringify(json).slice(0, 300)}`);
    }
    return { status, json };
  }

  async function head(node: CampaignNode): Promise<Head> {
    const context = model.startRead(node.index);
    const latest = (await requestOk(node, "/chain/head")).json as Head;
    model.recordHead(context, latest);
    return latest;
  }

  return {
    head,
    async submit(node: CampaignNode, { body, signature }: Transaction): Promise<SubmitOutcome> {
      const transaction = {
        body: Buffer.from(body).toString("base64"),
        signature: Buffer.from(signature).toString("base64"),
      };
      try {
        const { status } = await request(node, "/chain/transactions", { transaction });
        return status === ok ? "taken" : status >= 500 || status === 429 ? "refused for now" : "refused";
      } catch {
        return "unknown";
      }
    },
    async transactionStatus(node: CampaignNode, hash: string): Promise<void> {
      const { number } = await head(node);
      const context = model.startRead(node.index);
      const { status, json } = await requestOk(node, `/chain/transactions/${hash}`, 404);
      model.recordStatus(context, number, hash, status === ok ? statusOf(json as StatusJson) : { status: "not found" });
    },
    async document(node: CampaignNode, address: string): Promise<void> {
      const before = await head(node);
      const context = model.startRead(node.index);
      const { status, json } = await requestOk(node, `/storage-program/${address}/all`, 404, 410);
      const document = status === ok ? (json as { data: unknown }).data : undefined;
      const after = await head(node);
      model.recordDocument(context, [before.number, after.number], address, document);
    },
    async commitmentRoot(node: CampaignNode): Promise<string> {
      const { leafCount, rootHash } = (await requestOk(node, "/zk/merkle-root")).json as {
        leafCount: number;
        rootHash: string;
      };
      model.recordLeafCount(node.index, leafCount);
      return rootHash;
    },
    async health(node: CampaignNode): Promise<Health> {
      const { status, json } = await request(node, "/health");
      const body = json as { status: string; accepting: boolean; mempool_size: number | null };
      return { statusCode: status, status: body.status, accepting: body.accepting, pending: body.mempool_size };
    },
    /** Reads and verifies blocks, starting at a number. Returns the number of the last block. */
    async blocks(node: CampaignNode, from: number): Promise<number> {
      const { chain } = createGatehouse(`http://127.0.0.1:${node.port}`);
      let number = from - 1;
      for await (const { block } of chain.listBlocks({ fromNumber: BigInt(from) }, { timeoutMs: 60_000 })) {
        number++;
        try {
          const verified = verifyBlock(block!, rules);
          if (verified.number !== number) {
            throw new Error(`It is block ${verified.number}.`);
          }
          model.recordBlock(node.index, verified);
        } catch (error) {
          model.find("served wrong", `Block ${number} of ${node.name} cannot be right: ${errorMessage(error)}`);
          return number;
        }
      }
      return number;
    },
  };
}

interface StatusJson {
  readonly status: string;
  readonly blockNumber: number;
  readonly reason: string;
}

function statusOf({ status, blockNumber, reason }: StatusJson): ReportedStatus {
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
 * Verifies a block as an anonymous client, for whom some transactions may be replaced by their hashes. Throws an Error if
 * a signature or hash is invalid.
 */
function verifyBlock(block: Block, rules: ChainRules): VerifiedBlock {
  const header = verifyHeader(block, rules);
  const transactions = block.transactions.map(
    (transaction) => transaction.withheldHash ?? verifyTransaction(transaction, rules).hash,
  );
  const hashes = Buffer.from(transactions.map((hash) => hash.slice(2)).join(""), "hex");
  if (sha256(hashes) !== header.transactionsHash) {
    throw new Error("It does not hold the transactions that its header names.");
  }
  return {
    ...{ number: Number(header.number), hash: sha256(block.header), transactions },
    previousHash: header.previousHash,
  };
}

/**
 * Polls a condition until it is true. Returns false on timeout. A condition that rejects counts as false.
 *
 * @param ms time limit in milliseconds, which starts again with each progress.
 * @param progress returns a number that grows with each progress.
 */
export async function waitUntil(
  ms: number,
  condition: () => Promise<boolean>,
  progress: () => number = () => 0,
): Promise<boolean> {
  let sinceMs = performance.now();
  let highest = progress();
  while (!(await condition().catch(() => false))) {
    const now = performance.now();
    if (progress() > highest) {
      highest = progress();
      sinceMs = now;
    } else if (now - sinceMs > ms) {
      return false;
    }
    await sleep(100);
  }
  return true;
}
