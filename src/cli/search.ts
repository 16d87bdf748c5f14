/** `gatehouse search`: identifies a hash, key, number, address or name. */
import type { Command } from "commander";
import { instant, printable, printResult, shorten, table } from "./terminal/output.js";
import { addReadFlags, type ReadFlags } from "./usage/flags.js";

export function addSearch(command: Command): void {
  addReadFlags(command.argument("<TEXT>", "Hash, key, number, address, or a part of a name."))
    .addHelpText(
      "after",
      `
Finds blocks by number (or latest) and hash, transactions, commitments and spent nullifiers by hash, senders and owners by
public key, and storage programs by address or name: at most 20 of those that you may read. To show a result, use:

  gatehouse tx list --block NUMBER
  gatehouse tx list --sender KEY
  gatehouse tx status HASH
  gatehouse storage get ADDRESS
  gatehouse storage history ADDRESS

Examples:
  gatehouse search guestbook
  gatehouse search latest
  gatehouse search 0x… --key alice.key`,
    )
    .action(search);
}

async function search(text: string, flags: ReadFlags): Promise<void> {
  const { readAs } = await import("./transactions/caller.js");
  const response = await readAs(flags, `/search?${new URLSearchParams({ q: text }).toString()}`);
  printResult(flags, response, () => {
    const { results } = JSON.parse(response) as { readonly results: readonly ResultBody[] };
    const rows = results.map((result) => [result.kind, printable(describe(result).join(" "))]);
    return rows.length === 0 ? "No matches among what you may read." : table([["KIND", ""], ...rows]);
  });
}

/** Search result. One of the optional members is set: the one named by `kind`. */
interface ResultBody {
  readonly kind: string;
  readonly block?: {
    readonly number: number;
    readonly hash: string;
    readonly timestamp: number;
    readonly transactionCount: number | null;
  };
  readonly transaction?: { readonly hash: string; readonly status: string; readonly blockNumber?: number };
  readonly identity?: { readonly address: string; readonly nonce: number; readonly hasPrograms: boolean };
  readonly commitment?: { readonly commitment: string; readonly leafIndex: number };
  readonly nullifier?: {
    readonly nullifierHash: string;
    readonly blockNumber: number;
    readonly transactionHash: string;
  };
  readonly program?: {
    readonly storageAddress: string;
    readonly programName: string;
    readonly owner: string;
    readonly sizeBytes: number;
    readonly updatedAt: string;
  };
}

/** Returns the name that other commands accept, and the known facts. Names come from strangers, so they are quoted. */
function describe({ block, transaction, identity, commitment, nullifier, program }: ResultBody): string[] {
  if (block !== undefined) {
    const { number, hash, timestamp, transactionCount: count } = block;
    const transactions = count === null ? "" : `, ${count} ${count === 1 ? "transaction" : "transactions"}`;
    return [String(number), hash, `${instant(timestamp)}${transactions}`];
  }
  if (transaction !== undefined) {
    const { hash, status, blockNumber } = transaction;
    return [hash, blockNumber === undefined ? status : `${status} in block ${blockNumber}`];
  }
  if (identity !== undefined) {
    const { address, nonce, hasPrograms } = identity;
    return [address, `last nonce ${nonce}${hasPrograms ? ", owns programs" : ""}`];
  }
  if (commitment !== undefined) {
    return [commitment.commitment, `leaf ${commitment.leafIndex}`];
  }
  if (nullifier !== undefined) {
    const { nullifierHash, blockNumber, transactionHash } = nullifier;
    return [nullifierHash, `spent in block ${blockNumber} by ${transactionHash}`];
  }
  if (program !== undefined) {
    const { storageAddress, programName, owner, sizeBytes, updatedAt } = program;
    const size = `${sizeBytes} ${sizeBytes === 1 ? "byte" : "bytes"}`;
    return [storageAddress, JSON.stringify(programName), `of ${shorten(owner)}, ${size}, changed ${updatedAt}`];
  }
  return ["This result type is newer than this command; use --json to see it."];
}
