/** Transactions in the node-call interface, latest first. */
import { maxListBytes } from "../../base/limits/response-limits.js";
import { createSerialQueue } from "../../base/async/serial-queue.js";
import { RpcError } from "../errors.js";
import type { CallByName } from "../json-rpc/json-rpc.js";
import { invalidValue } from "../parameters.js";
import { readCount, withMembers } from "./blocks.js";

/** Limit on the transactions of one list. */
const maxTransactions = 100;
/** Limit on the transactions that a history skips, since the node reads them all. */
const maxSkipped = 1_000;

/** Queue that reads one history at a time, however many are requested. */
const queue = createSerialQueue();

/** Page of chain.listTransactions. */
interface Page {
  readonly transactions: readonly { readonly body?: { readonly sender: string; readonly nonce: number } }[];
  readonly nextPageToken?: string;
}

/** Returns a transaction as chain.listTransactions does, with additional members first that existing clients read. */
function describe(transaction: Page["transactions"][number]): string {
  const { body } = transaction;
  const ofBody = body && { from: body.sender, nonce: body.nonce };
  return withMembers(JSON.stringify(transaction), { status: "confirmed", ...ofBody });
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

/** Reads pages up to the end of the requested part. Of the types of existing clients, this network has one. */
async function readHistory(call: CallByName, sender: unknown, type: unknown, start: number, count: number) {
  const found: string[] = [];
  let skipped = 0;
  let bytes = 0;
  let pageToken: string | undefined;
  do {
    const page = await readPage(call, { sender, pageSize: maxTransactions, ...(pageToken && { pageToken }) });
    for (const transaction of page.transactions) {
      const isOfType =
        type === "all" || (type === "storageProgram" && Object.hasOwn(transaction.body ?? {}, "storage"));
      if (!isOfType || skipped++ < start) {
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
