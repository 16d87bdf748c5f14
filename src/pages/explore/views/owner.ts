/** Shows a key: its programs, and the transactions that it signed. */
import type { ProgramsAnswer, SenderAnswer, TransactionsAnswer } from "../answers.js";
import { type Content } from "../dom.js";
import { withQuery } from "../node.js";
import { operationLine } from "../operation-words.js";
import { blockLink, code, facts, note, type Page, pagedTable, section, timeAgo, transactionLink } from "../parts.js";
import { programRows, programColumns } from "../program-rows.js";
import type { Looking, View } from "../view.js";
import { short } from "../words.js";

export async function viewOwner({ node, signal }: Looking, key: string): Promise<View> {
  const named = encodeURIComponent(key);
  const programs = async (pageToken?: string): Promise<Page> => {
    const answer = await node.ask<ProgramsAnswer>(withQuery(`storage-program/owner/${named}`, { pageToken }), signal);
    const { nextPageToken } = answer;
    return {
      rows: programRows(answer.programs),
      next: nextPageToken === undefined ? undefined : () => programs(nextPageToken),
    };
  };
  const transactions = async (pageToken?: string): Promise<Page> => {
    const path = withQuery("chain/transactions", { sender: key, pageToken });
    const { transactions: found, nextPageToken } = await node.ask<TransactionsAnswer>(path, signal);
    return {
      rows: found.map(({ hash, blockNumber, timestamp, body }): Content[] => [
        blockLink(blockNumber),
        timeAgo(timestamp),
        operationLine(body),
        transactionLink(hash),
      ]),
      next: nextPageToken === undefined ? undefined : () => transactions(nextPageToken),
    };
  };
  const [{ nonce }, firstPrograms, firstTransactions] = await Promise.all([
    node.ask<SenderAnswer>(`chain/senders/${named}`, signal),
    programs(),
    transactions(),
  ]);
  const isYou = node.session.publicKey === key.toLowerCase();
  return {
    title: isYou ? "You" : `Owner ${short(key)}`,
    contents: [
      facts({ Key: code(key), "Last nonce": nonce === 0 ? "none: it has sent no transaction" : nonce }),
      section(
        "Programs",
        ...(isYou ? [] : [note("Those that your key may read.")]),
        pagedTable("Programs", programColumns, firstPrograms, "None that your key may read."),
      ),
      section(
        "Transactions",
        pagedTable(
          "Transactions",
          ["Block", "When", "Operation", "Hash"],
          firstTransactions,
          "None that your key may read.",
        ),
      ),
    ],
  };
}
