/** Shows all blocks, latest first. */
import type { BlocksResponse, BlockSummary } from "../responses.js";
import { withQuery } from "../node.js";
import { blockLink, ownerLink, shortHash, timeAgo } from "../parts.js";
import { type Column, dataTable } from "../table/data-table.js";
import type { View, ViewContext } from "../view.js";

const columns: readonly Column<BlockSummary>[] = [
  { name: "Number", cell: ({ number }) => blockLink(number), csv: ({ number }) => number },
  {
    name: "Time",
    cell: ({ timestamp }) => timeAgo(timestamp),
    csv: ({ timestamp }) => new Date(timestamp).toISOString(),
  },
  {
    name: "Transactions",
    cell: ({ transactionCount }) => transactionCount ?? "not stored",
    csv: ({ transactionCount }) => transactionCount,
  },
  { name: "Hash", cell: ({ hash }) => shortHash(hash), csv: ({ hash }) => hash },
  { name: "Proposer", cell: ({ proposer }) => ownerLink(proposer), csv: ({ proposer }) => proposer },
];

export async function viewBlocks({ node, signal }: ViewContext): Promise<View> {
  const blocks = await dataTable<BlockSummary>({
    id: "blocks",
    label: "Blocks",
    columns,
    empty: "There is no block yet.",
    async load(pageToken, size) {
      const path = withQuery("chain/blocks", { pageToken, pageSize: String(size) });
      const page = await node.fetchJson<BlocksResponse>(path, signal);
      return { rows: page.blocks, next: page.nextPageToken };
    },
  });
  return { title: "Blocks", contents: [blocks] };
}
