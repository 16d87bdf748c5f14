/** `gatehouse watch`: prints the events of the chain as they happen. */
import type { Command } from "commander";
import { type EventBody, watchEvents } from "./calls/events.js";
import { paint, print, printable, shorten } from "./terminal/output.js";
import { identityOf } from "./transactions/caller.js";
import { addReadFlags, collectValues, parseInteger, type ReadFlags } from "./usage/flags.js";

interface WatchFlags extends ReadFlags {
  readonly kind?: readonly string[];
  readonly address?: readonly string[];
  readonly owner?: readonly string[];
  readonly transaction?: readonly string[];
  readonly fromBlock?: string;
  readonly from?: string;
  readonly count?: number;
}

export function addWatch(command: Command): void {
  addReadFlags(command, "Key file to watch as, which also shows private events of that key.")
    .option("--kind <KIND>", "block, transaction, program, nullifier, commitments or head; repeatable.", collectValues)
    .option("--address <ADDRESS>", "Only changes of this program; repeatable.", collectValues)
    .option("--owner <KEY>", "Only changes of this owner's programs; repeatable.", collectValues)
    .option("--transaction <HASH>", "Only the status of this transaction; repeatable.", collectValues)
    .option("--from-block <NUMBER>", "First block to show; it may be a future one.")
    .option("--from <CURSOR>", "Continue after the message with this cursor.")
    .option("--count <NUMBER>", "Stop after this many events.", parseInteger)
    .addHelpText(
      "after",
      `
Runs until Ctrl-C or --count events. Reconnects after a lost connection and resumes after the last event. With --json, each
line is a message of GET /events. To resume later, pass the cursor of the last processed message as --from.

Examples:
  gatehouse watch
  gatehouse watch --kind program --owner 0x… --key alice.key
  gatehouse watch --json --from-block 1 | while read -r event; do …; done

Exit codes: 0 the count is reached; 1 rejected by the node; 3 not reachable.`,
    )
    .action(watch);
}

async function watch(flags: WatchFlags): Promise<void> {
  if (flags.count === 0) {
    return;
  }
  let remaining = flags.count ?? Infinity;
  let hasHeading = flags.json === true;
  const onConnectionChange = (lostReason: string | undefined): void => {
    process.stderr.write(
      lostReason === undefined ? "Reconnected to the node.\n" : `Connection lost: ${lostReason}; reconnecting.\n`,
    );
  };
  // A proof of identity is valid for five minutes, so each connection gets its own.
  const headers = () => identityOf(flags);
  for await (const { text, message } of watchEvents(flags.node, queryOf(flags), headers, onConnectionChange)) {
    if (flags.json === true) {
      print(text);
    } else if (message.progress === undefined) {
      if (!hasHeading) {
        hasHeading = true;
        print(paint("dim", row("BLOCK", "EVENT", "")));
      }
      print(describe(message));
    }
    if (message.progress === undefined && --remaining === 0) {
      return;
    }
  }
}

function queryOf({ kind, address, owner, transaction, fromBlock, from }: WatchFlags): URLSearchParams {
  const parameters = { kinds: kind, addresses: address, owners: owner, transactions: transaction, fromBlock, from };
  const query = new URLSearchParams();
  for (const [name, values = []] of Object.entries(parameters)) {
    [values].flat().forEach((value) => query.append(name, value));
  }
  return query;
}

/** Column widths in characters. A longer block number moves the other columns. */
const widths = { block: 9, event: 12 } as const;

function row(block: string, event: string, details: string): string {
  return `${block.padEnd(widths.block)} ${event.padEnd(widths.event)} ${details}`.trimEnd();
}

/** Formats an event as a line for people. Names and reasons come from strangers, so control characters are replaced. */
function describe(message: EventBody): string {
  const { transaction, program, nullifier, commitments, block, head } = message;
  const number = String(message.blockNumber);
  if (transaction !== undefined) {
    const { hash, outcome, sender, withheld, reason } = transaction;
    const sentBy = withheld ? "private" : sender === undefined ? "" : `by ${shorten(sender)}`;
    return outcome === "rejected"
      ? row("", "transaction", `${hash} ${paint("red", "rejected")}: ${printable(reason ?? "")}`)
      : row(number, "transaction", `${hash} ${sentBy}`);
  }
  if (program !== undefined) {
    const { storageAddress, change, fields } = program;
    const changed = change === "fields" ? fields.map((name) => JSON.stringify(name)).join(", ") : change;
    return row(number, "program", `${storageAddress} ${printable(changed)}`);
  }
  if (nullifier !== undefined) {
    return row(number, "nullifier", nullifier.nullifierHash);
  }
  if (commitments !== undefined) {
    const { commitments: leaves, root } = commitments;
    return row(number, "commitments", `${leaves.length}, root ${root}`);
  }
  if (block !== undefined) {
    const { hash, transactionCount: count } = block;
    return paint("bold", row(number, "block", `${hash} ${count} ${count === 1 ? "transaction" : "transactions"}`));
  }
  return row(number, "head", head === undefined ? "" : `signed by ${shorten(head.statement.proposer)}`);
}
