/** Sets the trusted genesis, by its hash. */
import { h } from "./dom.js";
import type { ExploredNode } from "./node.js";
import type { Proofs } from "./proofs.js";
import type { HeadAnswer } from "./answers.js";

/** Returns the form for the trusted network; the default is the node's own network. */
export function trustForm(proofs: Proofs, node: Pick<ExploredNode, "ask">): HTMLElement {
  const input = h("input", { type: "text", id: "trusted", spellcheck: "false", autocomplete: "off" });
  const said = h("p", { role: "status" });
  input.value = proofs.trusted ?? "";
  if (proofs.trusted === undefined) {
    void node.ask<HeadAnswer>("chain/head").then(
      ({ genesisHash }) => (input.placeholder = genesisHash),
      () => undefined,
    );
  }
  const form = h(
    "form",
    { class: "line" },
    h("label", { for: "trusted" }, "Hash of the genesis that you trust"),
    input,
    h("button", {}, "Trust this genesis"),
    said,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim().toLowerCase();
    const isHash = /^0x[0-9a-f]{64}$/.test(text);
    if (isHash || text === "") {
      proofs.trusted = isHash ? text : undefined;
      said.textContent = isHash
        ? "Proofs must lead to this genesis from now on."
        : "The genesis of this node is trusted.";
    } else {
      said.textContent = "It is 0x and 64 hex digits.";
    }
  });
  return h(
    "details",
    {},
    h("summary", {}, "Trusted genesis"),
    h(
      "p",
      {},
      "The authorities that the genesis names. While you name none it is the genesis of this node, and the page, too, comes from it: who does not trust this node checks with ",
      h("code", {}, "gatehouse verify"),
      " or the client package, against a hash from elsewhere.",
    ),
    form,
  );
}
