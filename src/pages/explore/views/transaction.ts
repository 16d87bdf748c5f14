/** Shows a transaction: its status as it changes, its operation, and its effects. */
import type { TransactionResponse } from "../responses.js";
import { type Content, h, setText } from "../dom.js";
import { type ExploredNode, NodeError } from "../node.js";
import { bodyFacts, changedProgram, operationDetails } from "../operation-text.js";
import {
  blockLink,
  facts,
  hash as copyableHash,
  messageOf,
  note,
  section,
  signInHint,
  tag,
  untrusted,
} from "../parts.js";
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

function contentsOf(context: ViewContext, response: TransactionResponse): Node[] {
  const { node, signal } = context;
  const { hash, status, blockNumber, reason, body } = response;
  const [text, className] = statusTexts[status] ?? [status, "dim"];
  const effects = h("div");
  if (blockNumber !== null) {
    effects.append(note("Loading the events of the block…"));
    void transactionEffects(node, { hash, blockNumber, isReadable: body !== undefined }, signal).then(
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
      Status: tag(text, className),
      Block: blockNumber === null ? undefined : blockLink(blockNumber),
      Reason: reason === null ? undefined : untrusted(reason, 1_000),
      ...(body && bodyFacts(body)),
    }),
    ...(status === "unknown"
      ? [note("This node never received the transaction, or no longer stores the transactions of its block.")]
      : [section("Operation", ...(body === undefined ? withheld(context, status) : [operationDetails(body)]))]),
    ...(blockNumber === null ? [] : [section("Changes", effects, versions)]),
  ];
}

/** Stages of a transaction by its status, and how many of them it has reached. */
const stagesOf: Readonly<Record<string, readonly [names: readonly string[], reached: number]>> = {
  unknown: [["Received", "Waiting for a block", "In a block"], 0],
  pending: [["Received", "Waiting for a block", "In a block"], 2],
  // It waits no more, so that the list does not say so.
  included: [["Received", "In a block"], 2],
  rejected: [["Received", "Rejected"], 2],
};

/** Returns the stages of a transaction, with those that it has reached marked. */
function stages(status: string): HTMLElement {
  const [names, done] = stagesOf[status] ?? [[], 0];
  return h(
    "ol",
    { class: "stages", "aria-label": "Progress" },
    ...names.map((name, i) =>
      h("li", { class: i < done ? "done" : undefined, "aria-current": i === done - 1 ? "step" : undefined }, name),
    ),
  );
}

/** Explains why a transaction that the node knows has no operation to show. */
function withheld({ node, signIn }: ViewContext, status: string): Content[] {
  if (status === "rejected") {
    return [h("p", {}, "Rejected transactions are not stored.")];
  }
  const why =
    status === "pending"
      ? "The node shows a transaction that waits for a block to its sender, and to the readers of its program, which may not exist yet."
      : "Its program is private or deleted. The node shows the transaction only to keys that may read the program.";
  return [h("p", {}, why), signInHint(node.session, signIn)];
}
