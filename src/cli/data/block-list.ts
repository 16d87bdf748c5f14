/** Implementation of `gatehouse block list`. */
import { requestOk } from "../calls/request-node.js";
import { pagePath } from "../calls/page-path.js";
import { instant, print, shorten } from "../terminal/output.js";
import { type PageBody, printPage } from "../terminal/page.js";
import type { NodeFlags, PageFlags } from "../usage/flags.js";

interface ListBody extends PageBody {
  readonly blocks: readonly {
    readonly number: number;
    readonly hash: string;
    readonly timestamp: number;
    readonly proposer: string;
    readonly transactionCount: number | null;
  }[];
}

/** Prints a table of blocks. */
export async function listBlocks(flags: NodeFlags & PageFlags): Promise<void> {
  const text = await requestOk(flags.node, pagePath("/chain/blocks", flags));
  if (flags.json === true) {
    print(text);
    return;
  }
  const page = JSON.parse(text) as ListBody;
  const rows = page.blocks.map(({ number, hash, timestamp, proposer, transactionCount }) => [
    String(number),
    instant(timestamp),
    transactionCount === null ? "not kept" : String(transactionCount),
    shorten(proposer),
    hash,
  ]);
  printPage(["BLOCK", "TIME", "TXS", "PROPOSER", ""], rows, page, "There is no block after the genesis yet.");
}
