/** Shows a transaction: its status as it changes, its operation, and its effects. */
import type { TransactionResponse } from "../responses.js";
import { button, type Content, h, setText } from "../dom.js";
import { type ExploredNode, NodeError } from "../node.js";
import { bodyFacts, changedProgram, operationDetails } from "../operation-text.js";
import { blockLink, facts, hash as copyableHash, messageOf, note, section, untrusted } from "../parts.js";
import { linkTo } from "../routes.js";
import { transactionEffects } from "../history/transaction-effects.js";
import type { View, ViewContext } from "../view.js";
import { short } from "../format.js";

/** Text and CSS class of each status. */
const statusTexts: Readonly<Record<string, readonly [text: string, className: string]>> = {
  unknown: ["not known here: this page waits for it", "dim"],
  pending: ["waiting for a block", "warn"],
  included: ["in a block", "good"],
  rejected: ["rejected", "bad"],
};

/** Interval in milliseconds between requests for the status of a transaction that is not in a block. */
const pollIntervalMs = 2_000;

export async function viewTransaction(context: ViewContext, name: string): Promise<View> {
  const { node, signal } = context;
  const path = `chain/transactions/${encodeURIComponent(name)}?withBody=true`;
  const unknown: TransactionResponse = { hash: name, status: "unknown", blockNumber: null, reason: null };
  const fetchStatus = async (): Promise<TransactionResponse> => {
    try {
      return await node.fetchJson<TransactionResponse>(path, signal);
    } catch (error) {
      if (error instanceof NodeError && error.reason === "NOT_FOUND") {
        return unknown;
      }
      throw error;
    }
  };
  const first = await fetchStatus();
  const shown = h("div");
  const announcement = h("p", { class: "unseen", role: "status" });
  const alert = h("p", { class: "bad", role: "alert", hidden: true });
  let status = "";
  const show = (response: TransactionResponse): void => {
    alert.hidden = true;
    if (response.status !== status) {
      const isChange = status !== "";
      ({ status } = response);
      shown.replaceChildren(...contentsOf(context, response));
      setText(announcement, isChange ? `The transaction is ${statusTexts[status]?.[0] ?? status}.` : "");
    }
  };
  show(first);
  if (isOpen(status)) {
    follow({ node, signal, hash: name, isOpen: () => isOpen(status) }, async () => {
      try {
        show(await fetchStatus());
      } catch (error) {
        if (!signal.aborted) {
          alert.hidden = false;
          setText(alert, `${messageOf(error)} This page tries again.`);
        }
      }
    });
  }
  return { title: `Transaction ${short(first.hash)}`, contents: [alert, shown, announcement] };
}

/** Returns true if the status can still change. */
const isOpen = (status: string): boolean => status === "unknown" || status === "pending";

interface Followed {
  readonly node: ExploredNode;
  readonly signal: AbortSignal;
  readonly hash: string;
  readonly isOpen: () => boolean;
}

/** Calls `onChange` after each event of the transaction and every 2 s, until it is in a block or rejected. */
function follow({ node, signal, hash, isOpen }: Followed, onChange: () => Promise<void>): void {
  const source = new EventSource(node.urlOf(`events?transactions=${encodeURIComponent(hash)}`));
  const timer = setInterval(() => void check(), pollIntervalMs);
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

function contentsOf({ node, signal, signIn }: ViewContext, response: TransactionResponse): Node[] {
  const { hash, status, blockNumber, reason, body } = response;
  const [text, className] = statusTexts[status] ?? [status, "dim"];
  const effects = h("div");
  if (blockNumber !== null) {
    effects.append(note("Loading the events of the block…"));
    void transactionEffects(node, hash, blockNumber, signal).then(
      (items) => effects.replaceChildren(...items),
      (error: unknown) => effects.replaceChildren(note(messageOf(error))),
    );
  }
  const address = changedProgram(body);
  const href = address && `${linkTo({ kind: "program", name: address })}?to=${encodeURIComponent(hash)}`;
  const versions = href && h("p", {}, h("a", { href }, "Values before and after"));
  return [
    stages(status),
    facts({
      Hash: copyableHash(hash),
      Status: h("strong", { class: className }, text),
      Block: blockNumber === null ? undefined : blockLink(blockNumber),
      Reason: reason === null ? undefined : untrusted(reason, 1_000),
      ...(body && bodyFacts(body)),
    }),
    ...(status === "unknown"
      ? [note("This node never received the transaction, or no longer stores the transactions of its block.")]
      : [section("Operation", ...(body === undefined ? withheld(status, signIn) : [operationDetails(body)]))]),
    ...(blockNumber === null ? [] : [section("Changes", effects, versions)]),
  ];
}

/** Returns the stages of a transaction, with those that it has reached marked. */
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

/** Explains why the operation is not shown. */
function withheld(status: string, signIn: () => void): Content[] {
  return status === "rejected"
    ? [h("p", {}, "Rejected transactions are not stored.")]
    : [
        h(
          "p",
          {},
          "The transaction changes a private program. Only keys that may read the program may read its operation.",
        ),
        h("p", {}, button("Sign in with a key", {}, signIn)),
      ];
}
