/** A button that checks a proof in this page, and the result, step by step. */
import { ProofError } from "../../../client/src/proof/proof-error.js";
import { button, type Content, h } from "./dom.js";
import { messageOf } from "./parts.js";
import type { Proofs, Trace, Verified } from "./proofs.js";
import { commandFor, stepList, stepsOf, unproved } from "./verify-steps.js";

/** Claim to be verified. */
export interface Claim {
  /** Label of the button, for screen readers as well. */
  readonly label: string;
  readonly name: string;
  readonly question: Trace["question"];
  /** Describes the proved value; throws an Error with the reason if it differs from the shown one. */
  readonly conclude: (verified: Verified) => readonly Content[];
}

/** The button, and the element for its result, which may be placed elsewhere. */
export interface Verifier {
  readonly button: HTMLButtonElement;
  readonly result: HTMLElement;
}

export function createVerifier(proofs: Proofs, { label, name, question, conclude }: Claim): Verifier {
  const verdict = h("div", { role: "status" });
  const steps = h("div");
  const result = h("div", { class: "verdict", hidden: true }, verdict, steps);
  const press = button(label, { "aria-label": name }, async () => {
    press.disabled = true;
    result.hidden = false;
    result.className = "verdict";
    verdict.replaceChildren("Requesting the proof…");
    steps.replaceChildren();
    const trace: Trace = { question };
    const isPinned = proofs.trusted !== undefined;
    let failure: unknown;
    try {
      const verified = await proofs.verify(question, trace);
      const words = conclude(verified).filter((content) => content !== undefined);
      verdict.replaceChildren(h("strong", { class: "good" }, "✓ Verified."), " ", h("span", {}, ...words));
      result.classList.add("good-line");
    } catch (error) {
      failure = error;
      const flaw = error instanceof ProofError ? ` (${error.flaw})` : "";
      verdict.replaceChildren(h("strong", { class: "bad" }, "✗ Not verified."), ` ${messageOf(error)}${flaw}`);
      result.classList.add("bad-line");
    }
    const url = new URL(".", location.href).href;
    steps.replaceChildren(
      h(
        "details",
        { open: failure !== undefined },
        h("summary", {}, "Step by step"),
        stepList(stepsOf(trace, failure, isPinned)),
        unproved(proofs, commandFor(question, url), trace.network?.genesisHash),
      ),
    );
    press.disabled = false;
  });
  return { button: press, result };
}
