/** Shows a block. */
import type { BlockAnswer, TransactionsAnswer } from "../answers.js";
import { type Content, h } from "../dom.js";
import { withQuery } from "../node.js";
import { operationLine } from "../operation-words.js";
import {
  code,
  facts,
  link,
  ownerLink,
  type Page,
  pagedTable,
  section,
  timeAgo,
  transactionLink,
  wholeLink,
} from "../parts.js";
import type { Looking, View } from "../view.js";
import { timeOf } from "../words.js";

/** @param name its number, its hash, or `latest`. */
export async function viewBlock({ node, signal }: Looking, name: string): Promise<View> {
  const path = /^(0x)?[0-9a-f]{64}$/i.test(name)
    ? `chain/blocks/hash/${name}`
    : `chain/blocks/${encodeURIComponent(name)}`;
  const { hash, header } = await node.ask<BlockAnswer>(path, signal);
  const { number, timestamp } = header;

  const pageOf = async (pageToken?: string): Promise<Page> => {
    const query = { blockNumber: String(number), pageToken };
    const { transactions, nextPageToken } = await node.ask<TransactionsAnswer>(withQuery("chain/transactions", query));
    return {
      rows: transactions.map(({ hash, index, body }): Content[] => [
        index,
        transactionLink(hash),
        operationLine(body),
        body === undefined ? undefined : ownerLink(body.sender),
      ]),
      next: nextPageToken === undefined ? undefined : () => pageOf(nextPageToken),
    };
  };
  const transactions = pagedTable(
    "Transactions",
    ["Place", "Hash", "Operation", "By"],
    await pageOf(),
    "It holds none.",
  );
  return {
    title: `Block ${number}`,
    contents: [
      h(
        "p",
        {},
        ...(number > 1 ? [link({ kind: "block", name: String(number - 1) }, `← Block ${number - 1}`), " "] : []),
        link({ kind: "block", name: String(number + 1) }, `Block ${number + 1} →`),
      ),
      facts({
        Hash: code(hash),
        Time: h("span", {}, timeOf(timestamp), ", ", timeAgo(timestamp)),
        "Made by": wholeLink(ownerLink(header.proposer), header.proposer),
        "Block before":
          number > 1
            ? wholeLink(link({ kind: "block", name: header.previousHash }, ""), header.previousHash)
            : h("span", {}, "the genesis, ", code(header.previousHash)),
        "State root": code(header.stateRoot),
        "Commitment root": header.commitmentRoot === null ? undefined : code(header.commitmentRoot),
        "Hash of its transactions": code(header.transactionsHash),
      }),
      section("Transactions", transactions),
    ],
  };
}
