/** Shows whether a nullifier is spent, with a button that verifies it. */
import type { NullifierResponse } from "../responses.js";
import { h } from "../dom.js";
import { blockLink, facts, hash as copyableHash, transactionLink } from "../parts.js";
import { createVerifier } from "../proof/verify-button.js";
import { trustForm } from "../proof/trust-form.js";
import type { View, ViewContext } from "../view.js";
import { short } from "../format.js";

export async function viewNullifier({ node, proofs, signal }: ViewContext, hash: string): Promise<View> {
  const path = `zk/nullifier/${encodeURIComponent(hash)}`;
  const { used, blockNumber, transactionHash } = await node.fetchJson<NullifierResponse>(path, signal);
  const { button, result } = createVerifier(proofs, {
    label: "Verify",
    question: { nullifiers: [hash] },
    conclude(state) {
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
