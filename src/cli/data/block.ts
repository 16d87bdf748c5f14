/** `gatehouse block`: lists the blocks of a node, exports them to a file and imports them. */
import type { Command } from "commander";
import {
  addControlFlags,
  addNodeFlags,
  addPageFlags,
  type ControlFlags,
  type NodeFlags,
  type PageFlags,
} from "../usage/flags.js";
import { print } from "../terminal/output.js";

export function addBlock(block: Command): void {
  addPageFlags(addNodeFlags(block.command("list").description("List the blocks that a node has, newest first.")))
    .addHelpText(
      "after",
      `
What is in a block is listed with: gatehouse tx list --block NUMBER

Examples:
  gatehouse block list --limit 10
  gatehouse block list --json | jq .blocks[0].hash`,
    )
    .action(async (flags: NodeFlags & PageFlags) => {
      const { listBlocks } = await import("./block-list.js");
      await listBlocks(flags);
    });

  addControlFlags(
    block
      .command("export <FILE>")
      .description("Write the blocks of a node of this machine to a file; a file that has some already is continued.")
      .addHelpText(
        "after",
        "\nThe file holds encoded blocks, each after its length as a varint. They are whole: private programs are in them.",
      ),
  )
    .option("--json", "Print JSON.")
    .action(async (file: string, flags: ControlFlags) => {
      const { exportBlocks } = await import("./block-file.js");
      const { exported, number } = await exportBlocks(flags, file);
      print(
        flags.json === true
          ? JSON.stringify({ exported, number })
          : `${exported} blocks written; ${file} goes to block ${number}.`,
      );
    });

  addControlFlags(
    addNodeFlags(block.command("import <FILE>")).description(
      "Apply the blocks of a file to a node of this machine, from where it is.",
    ),
  ).action(async (file: string, flags: NodeFlags & ControlFlags) => {
    const { importBlocks } = await import("./block-file.js");
    const { imported, number } = await importBlocks(flags, file);
    print(
      flags.json === true
        ? JSON.stringify({ imported, number })
        : `${imported} blocks applied; the node is at block ${number}.`,
    );
  });
}
