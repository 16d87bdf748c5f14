/** Implementation of the commands that list transactions: those in blocks, and those that changed a program. */
import { createHash } from "node:crypto";
import { type BodyJson, readOperation } from "../../base/describe-operation.js";
import { pagePath } from "../calls/page-path.js";
import { instant, print, printable, shorten } from "../terminal/output.js";
import { type PageBody, printPage } from "../terminal/page.js";
import type { PageFlags, ReadFlags } from "../usage/flags.js";
import { readAs } from "./caller.js";

/** Filters of the list. */
export interface TransactionFlags extends ReadFlags, PageFlags {
  readonly sender?: string;
  readonly block?: string;
}

/** The last column has no heading, so that its cells can go below their rows on a narrow terminal. */
const heading = ["BLOCK", "TIME", "SENDER", ""];

interface ListBody extends PageBody {
  readonly transactions: readonly {
    readonly hash: string;
    readonly blockNumber: number;
    readonly timestamp: number;
    readonly body?: BodyJson;
  }[];
}

/** Prints a table of the transactions in blocks. */
export async function listTransactions(flags: TransactionFlags): Promise<void> {
  const { sender, block: blockNumber } = flags;
  const text = await readAs(flags, pagePath("/chain/transactions", flags, { sender, blockNumber }));
  if (flags.json === true) {
    print(text);
    return;
  }
  const page = JSON.parse(text) as ListBody;
  const rows = page.transactions.map(({ hash, blockNumber, timestamp, body }) => [
    String(blockNumber),
    instant(timestamp),
    body === undefined ? "private" : shorten(body.sender),
    [hash, ...(body === undefined ? [] : [describe(body)])].join(" "),
  ]);
  printPage(heading, rows, page, "No transactions.");
}

/** Describes a transaction. Names come from strangers, so control characters are replaced. */
function describe(body: BodyJson): string {
  const operation = readOperation(body, (text) => createHash("sha256").update(text, "utf8").digest("hex"));
  return printable([operation?.summary, operation?.target?.name].filter(Boolean).join(" "));
}

interface HistoryBody {
  readonly nextPageToken?: string;
  readonly historyFromBlock: number;
  readonly changes: readonly {
    readonly blockNumber: number;
    readonly timestamp: number;
    readonly transactionHash: string;
    readonly sender: string;
    readonly kind: string;
    readonly fields: readonly string[];
  }[];
}

/** Prints a table of the changes to a program. */
export async function listHistory(address: string, flags: ReadFlags & PageFlags): Promise<void> {
  const path = `/storage-program/${encodeURIComponent(address)}/history`;
  const text = await readAs(flags, pagePath(path, flags));
  if (flags.json === true) {
    print(text);
    return;
  }
  const { changes, historyFromBlock: fromBlock, ...page } = JSON.parse(text) as HistoryBody;
  const rows = changes.map(({ blockNumber, timestamp, transactionHash, sender, kind, fields }) => [
    String(blockNumber),
    instant(timestamp),
    shorten(sender),
    `${transactionHash} ${[kind.replaceAll("_", " "), ...fields.map((field) => printable(JSON.stringify(field)))].join(" ")}`,
  ]);
  printPage(heading, rows, { ...page, fromBlock }, "This node knows no changes.");
}
