/** Shows all blocks, latest first. */
import type { BlocksResponse, BlockSummary } from "../responses.js";
import { withQuery } from "../node.js";
import { blockLink, ownerLink, shortHash } from "../parts.js";
import { type Column, column, dataTable } from "../table/data-table.js";
import { transactionColumns } from "../table/transaction-rows.js";
import type { View, ViewContext } from "../view.js";

const columns: readonly Column<BlockSummary>[] = [
  column("Number", "number", blockLink),
  transactionColumns.time,
  column("Transactions", "transactionCount", (count) => count ?? "not stored"),
  column("Hash", "hash", shortHash),
  column("Proposer", "proposer", ownerLink),
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
