/** Shows if a nullifier is spent, with its proof. */
import type { NullifierAnswer } from "../answers.js";
import { h } from "../dom.js";
import { blockLink, facts, hash as copyableHash, transactionLink } from "../parts.js";
import { createVerifier } from "../verify-button.js";
import { trustForm } from "../trust-form.js";
import type { Looking, View } from "../view.js";
import { short } from "../words.js";

export async function viewNullifier({ node, proofs, signal }: Looking, hash: string): Promise<View> {
  const answer = await node.ask<NullifierAnswer>(`zk/nullifier/${encodeURIComponent(hash)}`, signal);
  const { used, blockNumber, transactionHash } = answer;
  const { button, result } = createVerifier(proofs, {
    label: "Verify",
    name: "Verify",
    question: { nullifiers: [hash] },
    conclude({ state }) {
      if ((state.nullifiers[0]?.use !== undefined) !== used) {
        throw new Error("The proof shows another state: it has changed. Reload the page.");
      }
      return [used ? "It is spent." : "It is not spent."];
    },
  });
  return {
    title: `Nullifier ${short(hash)}`,
    contents: [
      facts({
        Nullifier: copyableHash(hash),
        State: h("strong", {}, used ? "spent" : "not spent"),
        Block: blockNumber === undefined ? undefined : blockLink(blockNumber),
        Transaction: transactionHash === undefined ? undefined : transactionLink(transactionHash),
      }),
      h("p", {}, button),
      result,
      trustForm(proofs, node),
    ],
  };
}
