/** Transactions in the node-call interface, latest first. */
import { maxListBytes } from "../../base/limits/response-limits.js";
import { createSerialQueue } from "../../base/async/serial-queue.js";
import { RpcError } from "../errors.js";
import type { CallByName } from "../json-rpc/json-rpc.js";
import { invalidValue } from "../parameters.js";
import { readCount } from "./blocks.js";

/** Limit on the items of one list in the rpcs of pending transactions and of programs. */
export const maxListed = 200;
/** Limit on the transactions of one list. */
const maxTransactions = 100;
/** Limit on the transactions that a history skips, since the node reads them all. */
const maxSkipped = 1_000;

/** Queue that reads one history at a time, however many are requested. */
const queue = createSerialQueue();

/** Transaction in a response of the chain. */
interface Described {
  readonly status?: keyof typeof statuses;
  readonly body?: {
    readonly sender: string;
    readonly nonce: number;
    readonly timestampMs: number;
    readonly storage?: object;
  };
}

/** Page of chain.listTransactions. */
interface Page {
  readonly transactions: readonly Described[];
  readonly nextPageToken?: string;
}

/** Status that existing clients read, by the status in a response of the chain. */
const statuses = { pending: "pending", included: "confirmed", rejected: "failed" } as const;
/** State of a transaction that existing clients wait for, by the status in a response of the chain. */
const states = { pending: "pending", included: "included", rejected: "failed" } as const;

/** Returns the type of a transaction in the terms of existing clients, which know the first of these. */
const typeOf = (body: Described["body"]): string | undefined =>
  body && (body.storage === undefined ? "zk" : "storageProgram");

/** Returns the members of a signed transaction that existing clients read. Undefined values are left out. */
function signedMembers(sender: string, nonce: number, timestamp: number, type?: string): object {
  const content = { type, from: sender, from_ed25519_address: sender, nonce, timestamp };
  return { from: sender, nonce, content };
}

/** Returns a transaction as the chain does, with additional members first that existing clients read. */
function describe({ status = "included", ...transaction }: Described): string {
  const { body } = transaction;
  const ofBody = body && signedMembers(body.sender, body.nonce, body.timestampMs, typeOf(body));
  return JSON.stringify({ status: statuses[status], ...ofBody, ...transaction });
}

/** Returns a transaction with its content. Throws RpcError NOT_FOUND. */
export async function readTransaction(call: CallByName, args: object): Promise<string> {
  return describe(JSON.parse(await call("chain.getTransaction", { ...args, withBody: true })) as Described);
}

/** Returns the state of a transaction, for which existing clients wait: unknown if the node does not know it. */
export async function readStatus(call: CallByName, args: object): Promise<string> {
  try {
    const { status, blockNumber, reason } = JSON.parse(await call("chain.getTransaction", args)) as {
      readonly [name in "blockNumber" | "reason"]: unknown;
    } & Required<Pick<Described, "status">>;
    return JSON.stringify({
      state: states[status],
      blockNumber: blockNumber ?? undefined,
      reason: reason ?? undefined,
    });
  } catch (error) {
    if (error instanceof RpcError && error.reason === "NOT_FOUND") {
      return JSON.stringify({ state: "unknown" });
    }
    throw error;
  }
}

/** Returns the oldest pending transactions, as many as possible. */
export async function listPending(call: CallByName): Promise<string> {
  const { transactions } = JSON.parse(await call("chain.listPendingTransactions", { limit: maxListed })) as {
    transactions: { readonly sender: string; readonly nonce: number; readonly timestamp: number }[];
  };
  return JSON.stringify(
    transactions.map(({ sender, nonce, timestamp, ...others }) => ({
      ...{ status: statuses.pending, ...signedMembers(sender, nonce, timestamp) },
      ...{ sender, timestamp, ...others },
    })),
  );
}

async function readPage(call: CallByName, request: object): Promise<Page> {
  return JSON.parse(await call("chain.listTransactions", request)) as Page;
}

/**
 * Returns the latest transactions, as many as fit.
 *
 * @throws RpcError INVALID_REQUEST; NOT_IMPLEMENTED for a start by number, since transactions have no number here.
 */
export async function listLatest(call: CallByName, { start, limit }: { start?: unknown; limit?: unknown }) {
  if (start !== undefined && start !== "latest") {
    throw typeof start === "number"
      ? new RpcError(
          "NOT_IMPLEMENTED",
          'Transactions have no number on this network: start must be "latest". Read pages with chain.listTransactions.',
        )
      : invalidValue("start", "latest", start);
  }
  const page = await readPage(call, { pageSize: readCount("limit", limit, maxTransactions) });
  return `[${page.transactions.map(describe).join(",")}]`;
}

/**
 * Returns the transactions of a sender, after the first `start` ones.
 *
 * @throws RpcError INVALID_REQUEST
 */
export function listHistory(
  call: CallByName,
  { sender, type = "all", start = 0, limit }: { sender?: unknown; type?: unknown; start?: unknown; limit?: unknown },
): Promise<string> {
  if (!Number.isSafeInteger(start) || (start as number) < 0 || (start as number) > maxSkipped) {
    throw invalidValue("start", `a whole number from 0 to ${maxSkipped}`, start);
  }
  const count = readCount("limit", limit, maxTransactions);
  return queue(() => readHistory(call, sender, type, start as number, count));
}

/** Reads pages up to the end of the requested part. */
async function readHistory(call: CallByName, sender: unknown, type: unknown, start: number, count: number) {
  const found: string[] = [];
  let skipped = 0;
  let bytes = 0;
  let pageToken: string | undefined;
  do {
    const page = await readPage(call, { sender, pageSize: maxTransactions, ...(pageToken && { pageToken }) });
    for (const transaction of page.transactions) {
      if ((type !== "all" && type !== typeOf(transaction.body)) || skipped++ < start) {
        continue;
      }
      const text = describe(transaction);
      bytes += Buffer.byteLength(text);
      if (found.length === count || (found.length > 0 && bytes > maxListBytes)) {
        return `[${found.join(",")}]`;
      }
      found.push(text);
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== undefined && found.length < count);
  return `[${found.join(",")}]`;
}
