/** Shows a decoded transaction. */
import type { TransactionAnswer } from "../answers.js";
import { button, type Content, h } from "../dom.js";
import { operationParts } from "../operation-words.js";
import { blockLink, code, facts, ownerLink, section, timeAgo, wholeLink } from "../parts.js";
import type { Looking, View } from "../view.js";
import { short, timeOf } from "../words.js";

const words: Readonly<Record<string, readonly [text: string, className: string]>> = {
  included: ["in a block", "good"],
  pending: ["waiting for a block", "warn"],
  rejected: ["rejected", "bad"],
};

export async function viewTransaction({ node, signal, signIn }: Looking, name: string): Promise<View> {
  const path = `chain/transactions/${encodeURIComponent(name)}?withBody=true`;
  const { hash, status, blockNumber, reason, body } = await node.ask<TransactionAnswer>(path, signal);
  const [text, className] = words[status] ?? [status, "dim"];
  return {
    title: `Transaction ${short(hash)}`,
    contents: [
      facts({
        Hash: code(hash),
        State: h("strong", { class: className }, text),
        Block: blockNumber === null ? undefined : blockLink(blockNumber),
        Why: reason ?? undefined,
        ...(body && {
          By: wholeLink(ownerLink(body.sender), body.sender),
          Made: h("span", {}, timeOf(body.timestampMs), ", ", timeAgo(body.timestampMs)),
          Nonce: body.nonce,
          "Not after": timeOf(body.expiresMs),
        }),
      }),
      section("Operation", ...(body === undefined ? withheld(status, signIn) : [operationParts(body)])),
    ],
  };
}

function withheld(status: string, signIn: () => void): Content[] {
  return status === "rejected"
    ? [h("p", {}, "Rejected transactions are not stored.")]
    : [
        h("p", {}, "It changes a private program. Keys that may read the program may read this."),
        h("p", {}, button("Sign in with a key", {}, signIn)),
      ];
}
