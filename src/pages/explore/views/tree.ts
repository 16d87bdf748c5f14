/** Shows the commitment tree, and the proof that a commitment is in it. */
import type { MerkleProofAnswer, RootAnswer } from "../answers.js";
import { climb, drawPath, pathTable } from "../commitment-path.js";
import { h } from "../dom.js";
import { NodeError } from "../node.js";
import { blockLink, facts, hash, note, section } from "../parts.js";
import type { Proofs } from "../proofs.js";
import { linkTo } from "../routes.js";
import { trustForm } from "../trust-form.js";
import { createVerifier } from "../verify-button.js";
import type { Looking, View } from "../view.js";
import { short } from "../words.js";

export async function viewTree(looking: Looking, commitment: string | undefined): Promise<View> {
  const { node, signal } = looking;
  const { rootHash, blockNumber, leafCount } = await node.ask<RootAnswer>("zk/merkle-root", signal);
  const { button, result } = createVerifier(looking.proofs, {
    label: "Verify the root",
    name: "Verify the root",
    question: { withCommitments: true },
    conclude: (verified) => concludeRoot(verified, rootHash, leafCount),
  });
  return {
    title: commitment === undefined ? "Commitment tree" : `Commitment ${short(commitment)}`,
    contents: [
      facts({
        Root: hash(rootHash),
        Leaves: `${leafCount} of ${2 ** 20}`,
        "Root made by": blockNumber === 0 ? "the genesis" : h("span", {}, "block ", blockLink(blockNumber)),
      }),
      h("p", {}, button),
      result,
      section("Find a commitment", commitmentForm(commitment)),
      ...(commitment === undefined ? [] : [await proofSection(looking, commitment)]),
      trustForm(looking.proofs, node),
    ],
  };
}

type Verified = Awaited<ReturnType<Proofs["verify"]>>;

function concludeRoot({ state }: Verified, root: string, leafCount: number): string[] {
  const { commitments } = state;
  const isShown =
    commitments?.kind === "tree" ? commitments.root === root : commitments?.kind === "empty" && leafCount === 0;
  if (!isShown) {
    throw new Error("The proof shows another root: the tree has grown. Reload the page.");
  }
  return ["The root is that of a signed block."];
}

function commitmentForm(commitment = ""): HTMLElement {
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
    location.hash = linkTo({ kind: "tree", commitment: input.value.trim() });
  });
  return form;
}

async function proofSection({ node, proofs, signal }: Looking, commitment: string): Promise<HTMLElement> {
  const title = "Its proof";
  let answer: MerkleProofAnswer;
  try {
    answer = await node.ask(`zk/merkle/proof/${encodeURIComponent(commitment)}`, signal);
  } catch (error) {
    if (error instanceof NodeError && error.reason !== "UNREACHABLE") {
      return section(title, h("p", {}, error.message));
    }
    throw error;
  }
  const { proof, blockNumber } = answer;
  const levels = climb(proof);
  const root = levels.at(-1)!.node;
  const { button, result } = createVerifier(proofs, {
    label: "Verify this path",
    name: "Verify this path",
    question: { withCommitments: true },
    conclude({ state }) {
      if (state.commitments?.kind !== "tree" || state.commitments.root !== root) {
        throw new Error(
          "The path leads to another root than the one that is proved. The tree may have grown: load the page again.",
        );
      }
      return [`Hashed upwards in this page, the commitment leads to the root of a signed block.`];
    },
  });
  return section(
    title,
    facts({
      Commitment: hash(answer.commitment),
      Leaf: proof.leafIndex,
      "Under the root of": h("span", {}, "block ", blockLink(blockNumber)),
    }),
    h("p", {}, button),
    result,
    drawPath(levels, proof.leafIndex),
    pathTable(levels),
    note(
      "The nodes of the path are hashed in this page (Poseidon); beside each is the one that the node gave. Empty: nothing was added there yet.",
    ),
  );
}
