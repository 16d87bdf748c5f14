/** Shows the effects of a transaction, which it reads from the events of the block. */
import { h } from "../dom.js";
import type { ExploredNode } from "../node.js";
import { describeChange } from "../operation-text.js";
import { commitmentLink, note, nullifierLink, programLink, shortHash, untrusted } from "../parts.js";

/** Event of a block. One member is set, which names the kind of the event. */
interface EffectEvent {
  readonly program?: { readonly storageAddress: string; readonly change: string; readonly fields: readonly string[] };
  readonly nullifier?: { readonly nullifierHash: string };
  readonly commitments?: { readonly commitments: readonly string[]; readonly root: string };
  /** Set in the message that follows all events of the block. */
  readonly progress?: object;
}

const timeoutMs = 15_000;
/** Maximum number of fields and of commitments that are listed. */
const maxListed = 50;

/**
 * Returns the effects as elements. Rejects if the node no longer has the events of the block.
 *
 * @param isReadable false if the reader may not read the operation, so that its effects are missing, too.
 */
export async function transactionEffects(
  node: ExploredNode,
  {
    hash,
    blockNumber,
    isReadable,
  }: { readonly hash: string; readonly blockNumber: number; readonly isReadable: boolean },
  signal: AbortSignal,
): Promise<HTMLElement[]> {
  const items = (await readEvents(node, hash, blockNumber, signal)).map(itemOf).filter((item) => item !== undefined);
  if (items.length > 0) {
    return [h("ul", { class: "keys" }, ...items.map((item) => h("li", {}, item)))];
  }
  return [note(isReadable ? "It changed nothing." : "Its changes are shown only to those who may read the operation.")];
}

/** Reads events until the stream reaches the latest block, at most for 15 s. */
async function readEvents(
  node: ExploredNode,
  hash: string,
  blockNumber: number,
  signal: AbortSignal,
): Promise<EffectEvent[]> {
  const events: EffectEvent[] = [];
  const end = new AbortController();
  const signals = AbortSignal.any([signal, end.signal, AbortSignal.timeout(timeoutMs)]);
  const path = `events?fromBlock=${blockNumber}&transactions=${hash}`;
  try {
    for await (const event of node.fetchLines<EffectEvent>(path, signals)) {
      if (event.progress !== undefined) {
        break;
      }
      events.push(event);
    }
  } catch (error) {
    if (!signals.aborted) {
      throw error;
    }
  }
  end.abort();
  return events;
}

/** Describes an event; undefined for an event of another kind. */
function itemOf({ program, nullifier, commitments }: EffectEvent): HTMLElement | undefined {
  if (program !== undefined) {
    const { storageAddress, change, fields } = program;
    const listed = fields.slice(0, maxListed).join(", ");
    const rest = fields.length > maxListed ? `, and ${fields.length - maxListed} more` : "";
    return h(
      "span",
      {},
      `${describeChange(change)}: `,
      programLink(storageAddress),
      ...(fields.length === 0 ? [] : [" ", untrusted(`${listed}${rest}`, 1_000)]),
    );
  }
  if (nullifier !== undefined) {
    return h("span", {}, "Spent the nullifier ", nullifierLink(nullifier.nullifierHash));
  }
  return (
    commitments &&
    h(
      "span",
      {},
      "Its block added ",
      ...commitments.commitments.slice(0, maxListed).flatMap((commitment) => [commitmentLink(commitment), " "]),
      ...(commitments.commitments.length > maxListed
        ? [`and ${commitments.commitments.length - maxListed} more, `]
        : []),
      "with the new root ",
      shortHash(commitments.root),
    )
  );
}
