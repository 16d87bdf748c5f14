/** The form for the genesis hash that the reader trusts. */
import { h } from "../dom.js";
import type { ExploredNode } from "../node.js";
import type { Proofs } from "./proofs.js";
import type { HeadResponse } from "../responses.js";

/** Returns the form for the trusted genesis. The default is the genesis of the node. */
export function trustForm(proofs: Proofs, node: Pick<ExploredNode, "fetchJson">): HTMLElement {
  const input = h("input", { type: "text", id: "trusted", spellcheck: "false", autocomplete: "off" });
  const status = h("p", { role: "status" });
  input.value = proofs.trusted ?? "";
  if (proofs.trusted === undefined) {
    void node.fetchJson<HeadResponse>("chain/head").then(
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
    status,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim().toLowerCase();
    const isHash = /^0x[0-9a-f]{64}$/.test(text);
    if (isHash || text === "") {
      proofs.trusted = isHash ? text : undefined;
      status.textContent = isHash
        ? "Proofs must lead to this genesis from now on."
        : "The genesis of this node is trusted.";
    } else {
      status.textContent = "The hash must be 0x and 64 hex digits.";
    }
  });
  return h(
    "details",
    {},
    h("summary", {}, "Trusted genesis"),
    h(
      "p",
      {},
      "Proofs must be signed by an authority that this genesis names. The default is the genesis of this node. This page also comes from this node: if you do not trust it, check with ",
      h("code", {}, "gatehouse verify"),
      " or the client package, and a hash from another source.",
    ),
    form,
  );
}
