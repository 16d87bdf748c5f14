/** Shows a key: its last nonce, its programs, and the transactions that it signed. */
import type { ProgramsResponse, ProgramSummary, SenderResponse } from "../responses.js";
import { containing, dataTable, type DataTable } from "../table/data-table.js";
import { h } from "../dom.js";
import { withQuery } from "../node.js";
import { facts, hash, note, section } from "../parts.js";
import { programColumns } from "../table/program-rows.js";
import { transactionTable } from "../table/transaction-rows.js";
import { createVerifier } from "../proof/verify-button.js";
import type { View, ViewContext } from "../view.js";
import { short } from "../format.js";

export async function viewOwner(context: ViewContext, key: string): Promise<View> {
  const { node, proofs, signal } = context;
  const encodedKey = encodeURIComponent(key);
  const loadPrograms: DataTable<ProgramSummary>["load"] = async (pageToken, size) => {
    const path = withQuery(`storage-program/owner/${encodedKey}`, { pageToken, limit: String(size) });
    const { programs, nextPageToken } = await node.fetchJson<ProgramsResponse>(path, signal);
    return { rows: programs, next: nextPageToken };
  };
  const [{ address, nonce }, programs, transactions] = await Promise.all([
    node.fetchJson<SenderResponse>(`chain/senders/${encodedKey}`, signal),
    dataTable<ProgramSummary>({
      id: "programs",
      label: "Programs",
      columns: programColumns.slice(0, -1),
      filters: [containing("name", "Name contains", ({ programName }) => programName)],
      empty: "No programs that the reader may see.",
      load: loadPrograms,
    }),
    transactionTable(
      context,
      { sender: key },
      ["hash", "kind", "operation", "block", "time"],
      "No transactions that you may read.",
    ),
  ]);
  const shownPrograms =
    node.session.publicKey === undefined ? "Public ones. Sign in to see more." : "Those that your key may read.";
  const isYou = node.session.publicKey === address;
  const { button, result } = createVerifier(proofs, {
    label: "Verify the nonce",
    question: { senders: [address] },
    conclude(state) {
      if (state.senders[0]?.nonce !== BigInt(nonce)) {
        throw new Error("The proof shows another nonce: it has changed. Reload the page.");
      }
      return [nonce === 0 ? "It has sent no transaction." : `The last nonce is ${nonce}.`];
    },
  });
  return {
    title: isYou ? "You" : `Owner ${short(address)}`,
    contents: [
      facts({ Key: hash(address), "Last nonce": nonce === 0 ? "none: it has sent no transaction" : nonce }),
      h("p", {}, button),
      result,
      section("Programs", note(shownPrograms), programs),
      section("Transactions", transactions),
    ],
  };
}
