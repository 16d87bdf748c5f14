/** A button that requests a proof, checks it in this page, and shows the result step by step. */
import type { ProvedState } from "../../../../client/src/proof/check.js";
import { ProofError } from "../../../../client/src/proof/proof-error.js";
import { button, type Content, h } from "../dom.js";
import { messageOf } from "../parts.js";
import type { Proofs, Trace } from "./proofs.js";
import { commandFor, stepList, stepsOf, unprovedNotice } from "./verify-steps.js";

/** Statement of a view that a proof can verify. */
export interface Claim {
  /** Visible text of the button. */
  readonly label: string;
  /** Name of the button for screen readers, by default the label. */
  readonly name?: string;
  readonly question: Trace["question"];
  /** Describes the proved value. Throws an Error with the reason if it differs from the shown value. */
  readonly conclude: (state: ProvedState) => readonly Content[];
}

/** The button and the element for its result, which the caller inserts into the page. */
export interface Verifier {
  readonly button: HTMLButtonElement;
  readonly result: HTMLElement;
}

export function createVerifier(proofs: Proofs, { label, name = label, question, conclude }: Claim): Verifier {
  const outcome = h("div", { role: "status" });
  const steps = h("div");
  const result = h("div", { class: "verdict", hidden: true }, outcome, steps);
  const press = button(label, { "aria-label": name }, async () => {
    press.disabled = true;
    result.hidden = false;
    result.className = "verdict";
    outcome.replaceChildren("Requesting the proof…");
    steps.replaceChildren();
    const trace: Trace = { question };
    const isPinned = proofs.trusted !== undefined;
    let failure: unknown;
    try {
      const conclusion = conclude(await proofs.verify(trace));
      outcome.replaceChildren(h("strong", { class: "good" }, "✓ Verified."), " ", h("span", {}, ...conclusion));
      result.classList.add("good-line");
    } catch (error) {
      failure = error;
      const flaw = error instanceof ProofError ? ` (${error.flaw})` : "";
      outcome.replaceChildren(h("strong", { class: "bad" }, "✗ Not verified."), ` ${messageOf(error)}${flaw}`);
      result.classList.add("bad-line");
    }
    const url = new URL(".", location.href).href;
    steps.replaceChildren(
      h(
        "details",
        { open: failure !== undefined },
        h("summary", {}, "Step by step"),
        stepList(stepsOf(trace, failure, isPinned)),
        unprovedNotice(proofs, commandFor(question, url), trace.network?.genesisHash),
      ),
    );
    press.disabled = false;
  });
  return { button: press, result };
}
