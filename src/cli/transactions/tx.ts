/** `gatehouse tx`: lists transactions, and shows the status of one. */
import type { Command } from "commander";
import { createHash } from "node:crypto";
import { type BodyJson, readOperation } from "../../base/describe-operation.js";
import { pagePath } from "../calls/request-node.js";
import { instant, type PageBody, printable, printPage, printResult, shorten } from "../terminal/output.js";
import {
  addNodeFlags,
  addPageFlags,
  addReadFlags,
  type NodeFlags,
  type PageFlags,
  type ReadFlags,
} from "../usage/flags.js";
import { readAs } from "./caller.js";
import { transactionState } from "./submit.js";

interface ListBody extends PageBody {
  readonly transactions: readonly {
    readonly hash: string;
    readonly blockNumber: number;
    readonly timestamp: number;
    /** Undefined for a transaction that the reader may not see. */
    readonly body?: BodyJson;
  }[];
}

/** Heading of lists of changes. The last column has none, so that its cells can go below their rows. */
export const changesHeading = ["BLOCK", "TIME", "SENDER", ""];

export function addTx(tx: Command): void {
  addNodeFlags(
    tx.command("status <HASH>").description("Show whether a transaction is pending, in a block, or rejected."),
  ).action(async (hash: string, flags: NodeFlags) => {
    const state = await transactionState(flags.node, hash);
    const { status, blockNumber, reason } = state;
    printResult(flags, state, () => {
      if (status === "included") {
        return `included in block ${blockNumber}`;
      }
      return reason === null ? status : `${status}: ${printable(reason)}`;
    });
  });

  addPageFlags(addReadFlags(tx.command("list").description("List the transactions in blocks, latest first.")))
    .option("--sender <KEY>", "Only transactions that this public key signed and that you may read.")
    .option("--block <NUMBER>", "Only transactions of this block; latest for the latest block.")
    .addHelpText(
      "after",
      `
Transactions on programs that you may not read are listed as private, and left out with --sender. Pending transactions are
not listed. To list the changes of one program: gatehouse storage history ADDRESS

Examples:
  gatehouse tx list --limit 10
  gatehouse tx list --block latest
  gatehouse tx list --sender 0x… --key alice.key`,
    )
    .action(async (flags: ReadFlags & PageFlags & { sender?: string; block?: string }) => {
      const path = pagePath("/chain/transactions", flags, { sender: flags.sender, blockNumber: flags.block });
      const rowsOf = ({ transactions }: ListBody) =>
        transactions.map(({ hash, blockNumber, timestamp, body }) => [
          String(blockNumber),
          instant(timestamp),
          body === undefined ? "private" : shorten(body.sender),
          body === undefined ? hash : `${hash} ${describe(body)}`,
        ]);
      printPage(flags, await readAs(flags, path), changesHeading, rowsOf, "No transactions.");
    });
}

/** Describes a transaction. Names come from strangers, so control characters are replaced. */
function describe(body: BodyJson): string {
  const operation = readOperation(body, (text) => createHash("sha256").update(text, "utf8").digest("hex"));
  return printable([operation?.summary, operation?.target?.name].filter(Boolean).join(" "));
}
