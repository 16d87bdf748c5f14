/** A button that checks a proof in this page, and the description of the result. */
import type { ProofQuestion } from "../../../client/src/proof/check.js";
import { ProofError } from "../../../client/src/proof/proof-error.js";
import { button, type Content, h } from "./dom.js";
import { blockLink, code, messageOf, ownerLink } from "./parts.js";
import type { Proofs, Verified } from "./proofs.js";
import { ago, short } from "./words.js";

/** Claim to be verified. */
export interface Claim {
  /** Label of the button, for screen readers as well. */
  readonly label: string;
  readonly name: string;
  readonly question: ProofQuestion;
  /** Describes the proved value; throws an Error with the reason if it differs from the shown one. */
  readonly conclude: (verified: Verified) => readonly Content[];
}

/** The button, and the element for its result, which may be placed elsewhere. */
export interface Verifier {
  readonly button: HTMLButtonElement;
  readonly result: HTMLElement;
}

export function createVerifier(proofs: Proofs, { label, name, question, conclude }: Claim): Verifier {
  const result = h("div", { class: "verdict", role: "status" });
  const press = button(label, { "aria-label": name }, async () => {
    press.disabled = true;
    result.replaceChildren("Requesting the proof…");
    result.className = "verdict";
    try {
      const verified = await proofs.verify(question);
      result.replaceChildren(
        h("strong", { class: "good" }, "✓ Verified."),
        " ",
        ...conclude(verified).map(toText),
        basis(verified),
      );
      result.classList.add("good-line");
    } catch (error) {
      const flaw = error instanceof ProofError ? ` (${error.flaw})` : "";
      result.replaceChildren(h("strong", { class: "bad" }, "✗ Not verified."), ` ${messageOf(error)}${flaw}`);
      result.classList.add("bad-line");
    }
    press.disabled = false;
  });
  return { button: press, result };
}

const toText = (content: Content): Node | string => (content instanceof Node ? content : String(content ?? ""));

/** Describes the basis of a proof: block, signer, genesis. */
function basis({ state, signer, genesisHash }: Verified): HTMLElement {
  const { number, saidMs } = state.block;
  return h(
    "p",
    { class: "dim" },
    "As of block ",
    blockLink(Number(number)),
    ...(signer === undefined ? [] : [", whose header ", ownerLink(signer), " signed"]),
    `; an authority of the network said ${ago(Number(saidMs))} that it is the newest. Network: `,
    h("span", { title: genesisHash }, code(short(genesisHash))),
    ".",
  );
}
