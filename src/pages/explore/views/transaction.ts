/** Shows a transaction: its status as it changes, its operation, and its effects. */
import type { TransactionAnswer } from "../answers.js";
import { button, type Content, h, say } from "../dom.js";
import { type ExploredNode, NodeError } from "../node.js";
import { changedProgram, operationParts } from "../operation-words.js";
import {
  blockLink,
  facts,
  given,
  hash as copyableHash,
  messageOf,
  note,
  ownerLink,
  section,
  timeAgo,
  wholeLink,
} from "../parts.js";
import { linkTo } from "../routes.js";
import { effectsOf } from "../history/transaction-effects.js";
import type { Looking, View } from "../view.js";
import { short, timeOf } from "../words.js";

const words: Readonly<Record<string, readonly [text: string, className: string]>> = {
  unknown: ["not known here: this page waits for it", "dim"],
  pending: ["waiting for a block", "warn"],
  included: ["in a block", "good"],
  rejected: ["rejected", "bad"],
};

/** Interval in milliseconds between requests for the status of a transaction that is in no block. */
const askEveryMs = 2_000;

export async function viewTransaction(looking: Looking, name: string): Promise<View> {
  const { node, signal } = looking;
  const path = `chain/transactions/${encodeURIComponent(name)}?withBody=true`;
  const unknown: TransactionAnswer = { hash: name, status: "unknown", blockNumber: null, reason: null };
  const askStatus = async (): Promise<TransactionAnswer> => {
    try {
      return await node.ask<TransactionAnswer>(path, signal);
    } catch (error) {
      if (error instanceof NodeError && error.reason === "NOT_FOUND") {
        return unknown;
      }
      throw error;
    }
  };
  const first = await askStatus();
  const shown = h("div");
  const said = h("p", { class: "spoken", role: "status" });
  const trouble = h("p", { class: "bad", role: "alert", hidden: true });
  let status = "";
  const show = (answer: TransactionAnswer): void => {
    trouble.hidden = true;
    if (answer.status !== status) {
      const isChange = status !== "";
      ({ status } = answer);
      shown.replaceChildren(...contentsOf(looking, answer));
      say(said, isChange ? `The transaction is ${words[status]?.[0] ?? status}.` : "");
    }
  };
  show(first);
  if (isOpen(first)) {
    follow({ node, signal, hash: name, isOpen: () => status === "unknown" || status === "pending" }, async () => {
      try {
        show(await askStatus());
      } catch (error) {
        if (!signal.aborted) {
          trouble.hidden = false;
          say(trouble, `${messageOf(error)} This page tries again.`);
        }
      }
    });
  }
  return { title: `Transaction ${short(first.hash)}`, contents: [trouble, shown, said] };
}

const isOpen = ({ status }: TransactionAnswer): boolean => status === "unknown" || status === "pending";

interface Followed {
  readonly node: ExploredNode;
  readonly signal: AbortSignal;
  readonly hash: string;
  readonly isOpen: () => boolean;
}

/** Calls back when the node reports the transaction, and from time to time, until it is in a block or rejected. */
function follow({ node, signal, hash, isOpen }: Followed, onChange: () => Promise<void>): void {
  const source = new EventSource(node.urlOf(`events?transactions=${encodeURIComponent(hash)}`));
  const timer = setInterval(() => void check(), askEveryMs);
  const stop = (): void => {
    clearInterval(timer);
    source.close();
  };
  const check = async (): Promise<void> => {
    await onChange();
    if (!isOpen()) {
      stop();
    }
  };
  source.addEventListener("transaction", () => void check());
  signal.addEventListener("abort", stop);
}

function contentsOf({ node, signal, signIn }: Looking, answer: TransactionAnswer): Node[] {
  const { hash, status, blockNumber, reason, body } = answer;
  const [text, className] = words[status] ?? [status, "dim"];
  const effects = h("div");
  if (blockNumber !== null) {
    effects.append(note("Reading the events of its block…"));
    void effectsOf(node, hash, blockNumber, signal).then(
      (made) => effects.replaceChildren(...made),
      (error: unknown) => effects.replaceChildren(note(messageOf(error))),
    );
  }
  const address = changedProgram(body);
  return [
    stages(status),
    facts({
      Hash: copyableHash(hash),
      State: h("strong", { class: className }, text),
      Block: blockNumber === null ? undefined : blockLink(blockNumber),
      Why: reason === null ? undefined : given(reason, 1_000),
      ...(body && {
        By: wholeLink(ownerLink(body.sender), body.sender),
        Made: h("span", {}, timeOf(body.timestampMs), ", ", timeAgo(body.timestampMs)),
        Nonce: body.nonce,
        "Not after": timeOf(body.expiresMs),
        Network: copyableHash(body.network),
      }),
    }),
    ...(status === "unknown"
      ? [note("This node never received it, or no longer keeps the transactions of its block.")]
      : [section("Operation", ...(body === undefined ? withheld(status, signIn) : [operationParts(body)]))]),
    ...(blockNumber === null
      ? []
      : [
          section(
            "Changes",
            effects,
            address !== undefined
              ? h(
                  "p",
                  {},
                  h(
                    "a",
                    { href: `${linkTo({ kind: "program", address })}?to=${encodeURIComponent(hash)}` },
                    "Values before and after",
                  ),
                )
              : undefined,
          ),
        ]),
  ];
}

/** Returns the way of a transaction, as far as it came. */
function stages(status: string): HTMLElement {
  const names = status === "rejected" ? ["Received", "Rejected"] : ["Received", "Waiting for a block", "In a block"];
  const done = { unknown: 0, pending: 2, included: 3, rejected: 2 }[status] ?? 0;
  return h(
    "ol",
    { class: "stages", "aria-label": "Progress" },
    ...names.map((name, i) =>
      h("li", { class: i < done ? "done" : undefined, "aria-current": i === done - 1 ? "step" : undefined }, name),
    ),
  );
}

function withheld(status: string, signIn: () => void): Content[] {
  return status === "rejected"
    ? [h("p", {}, "Rejected transactions are not stored.")]
    : [
        h("p", {}, "It changes a private program. Keys that may read the program may read this."),
        h("p", {}, button("Sign in with a key", {}, signIn)),
      ];
}
