/** `gatehouse block`: lists the blocks of a node, exports them to a file and imports them. */
import type { Command } from "commander";
import { pagePath, requestOk } from "../calls/request-node.js";
import { instant, type PageBody, printPage, printResult, shorten } from "../terminal/output.js";
import {
  addControlFlags,
  addNodeFlags,
  addPageFlags,
  type ControlFlags,
  type NodeFlags,
  type PageFlags,
} from "../usage/flags.js";

interface ListBody extends PageBody {
  readonly blocks: readonly {
    readonly number: number;
    readonly hash: string;
    readonly timestamp: number;
    readonly proposer: string;
    readonly transactionCount: number | null;
  }[];
}

export function addBlock(block: Command): void {
  addPageFlags(addNodeFlags(block.command("list").description("List the blocks of a node, latest first.")))
    .addHelpText(
      "after",
      `
To list the transactions of a block: gatehouse tx list --block NUMBER

Examples:
  gatehouse block list --limit 10
  gatehouse block list --json | jq .blocks[0].hash`,
    )
    .action(async (flags: NodeFlags & PageFlags) => {
      const text = await requestOk(flags.node, pagePath("/chain/blocks", flags));
      const heading = ["BLOCK", "TIME", "TXS", "PROPOSER", ""];
      const rowsOf = ({ blocks }: ListBody) =>
        blocks.map(({ number, hash, timestamp, proposer, transactionCount }) => [
          String(number),
          instant(timestamp),
          transactionCount === null ? "not stored" : String(transactionCount),
          shorten(proposer),
          hash,
        ]);
      printPage(flags, text, heading, rowsOf, "There is no block after the genesis yet.");
    });

  addControlFlags(
    block
      .command("export <FILE>")
      .description("Write the blocks of a node on this machine to a file. A file with blocks is continued.")
      .addHelpText(
        "after",
        "\nThe file holds encoded blocks, each after its length as a varint. They are complete, including private programs.",
      ),
  )
    .option("--json", "Print JSON.")
    .action(async (file: string, flags: ControlFlags) => {
      const { exportBlocks } = await import("./block-file.js");
      const { exported, number } = await exportBlocks(flags, file);
      const text = `${exported} blocks written; ${file} ends with block ${number}.`;
      printResult(flags, { exported, number }, () => text);
    });

  addControlFlags(
    block
      .command("import <FILE>")
      .description("Apply the blocks of a file to a node on this machine, from its next block on."),
  )
    .option("--json", "Print JSON.")
    .action(async (file: string, flags: ControlFlags) => {
      const { importBlocks } = await import("./block-file.js");
      const { imported, number } = await importBlocks(flags, file);
      const text = `${imported} blocks applied; the node is at block ${number}.`;
      printResult(flags, { imported, number }, () => text);
    });
}
