/** Shows the commitment tree, and the proof of one commitment. */
import type { ProvedState } from "../../../../client/src/proof/check.js";
import type { MerkleProofResponse, RootResponse } from "../responses.js";
import { computePath, drawPath, pathTable } from "../proof/commitment-path.js";
import { h } from "../dom.js";
import { NodeError } from "../node.js";
import { blockLink, facts, hash, note, section } from "../parts.js";
import { linkTo } from "../routes.js";
import { trustForm } from "../proof/trust-form.js";
import { createVerifier } from "../proof/verify-button.js";
import type { View, ViewContext } from "../view.js";
import { grouped, short } from "../format.js";

export async function viewTree(context: ViewContext, commitment: string): Promise<View> {
  const { node, signal } = context;
  const { rootHash, blockNumber, leafCount } = await node.fetchJson<RootResponse>("zk/merkle-root", signal);
  const { button, result } = createVerifier(context.proofs, {
    label: "Verify the root",
    question: { withCommitments: true },
    conclude: ({ commitments }) => concludeRoot(commitments, rootHash, leafCount),
  });
  return {
    title: commitment === "" ? "Commitment tree" : `Commitment ${short(commitment)}`,
    contents: [
      facts({
        Root: hash(rootHash),
        Leaves: `${grouped(leafCount)} of ${grouped(2 ** 20)}`,
        "Root from": blockNumber === 0 ? "the genesis" : h("span", {}, "block ", blockLink(blockNumber)),
      }),
      h("p", {}, button),
      result,
      section("Find a commitment", commitmentForm(commitment)),
      ...(commitment === "" ? [] : [await proofSection(context, commitment)]),
      trustForm(context.proofs, node),
    ],
  };
}

/** Compares the proved root with the shown one. Throws if they differ. */
function concludeRoot(commitments: ProvedState["commitments"], root: string, leafCount: number): string[] {
  const isShown =
    commitments?.kind === "tree" ? commitments.root === root : commitments?.kind === "empty" && leafCount === 0;
  if (!isShown) {
    throw new Error("The proof shows another root: the tree has grown. Reload the page.");
  }
  return ["The root is in the header of a signed block."];
}

function commitmentForm(commitment: string): HTMLElement {
  const input = h("input", {
    type: "text",
    id: "commitment",
    spellcheck: "false",
    autocomplete: "off",
    required: true,
  });
  input.value = commitment;
  const form = h(
    "form",
    { class: "line" },
    h("label", { for: "commitment" }, "Commitment, 0x and 64 hex digits"),
    input,
    h("button", {}, "Draw its proof"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = linkTo({ kind: "tree", name: input.value.trim() });
  });
  return form;
}

async function proofSection({ node, proofs, signal }: ViewContext, commitment: string): Promise<HTMLElement> {
  const title = "Its proof";
  let response: MerkleProofResponse;
  try {
    response = await node.fetchJson(`zk/merkle/proof/${encodeURIComponent(commitment)}`, signal);
  } catch (error) {
    if (error instanceof NodeError && error.reason !== "UNREACHABLE") {
      return section(title, h("p", {}, error.message));
    }
    throw error;
  }
  const { proof, blockNumber } = response;
  const levels = computePath(proof);
  const root = levels.at(-1)!.node;
  const { button, result } = createVerifier(proofs, {
    label: "Verify this path",
    question: { withCommitments: true },
    conclude({ commitments }) {
      if (BigInt(proof.leaf) !== BigInt(commitment)) {
        throw new Error("The node returned the path of another commitment.");
      }
      if (commitments?.kind !== "tree" || commitments.root !== root) {
        throw new Error("The path leads to another root than the proof. The tree may have grown: reload the page.");
      }
      return [`Hashed upwards in this page, the commitment leads to the root of a signed block.`];
    },
  });
  return section(
    title,
    facts({
      Commitment: hash(response.commitment),
      Leaf: proof.leafIndex,
      "Root from": h("span", {}, "block ", blockLink(blockNumber)),
    }),
    h("p", {}, button),
    result,
    drawPath(levels, proof.leafIndex),
    pathTable(levels),
    note(
      "This page computes the hashes of the path (Poseidon) from the siblings next to them, which the node returned. Empty: a subtree without commitments.",
    ),
  );
}
