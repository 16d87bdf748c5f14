/** Shows the effects of a transaction, which it reads from the events of the block. */
import { h } from "../dom.js";
import type { ExploredNode } from "../node.js";
import { describeChange } from "../operation-text.js";
import { commitmentLink, note, nullifierLink, programLink, shortHash, untrusted } from "../parts.js";

/** Event of a block. One member is set, which names the kind of the event. */
interface EffectEvent {
  readonly blockNumber: number;
  readonly program?: { readonly storageAddress: string; readonly change: string; readonly fields: readonly string[] };
  readonly nullifier?: { readonly nullifierHash: string };
  readonly commitments?: { readonly commitments: readonly string[]; readonly root: string };
}

const kinds = ["program", "nullifier", "commitments"] as const;
const timeoutMs = 15_000;
/** Maximum number of fields and of commitments that are listed. */
const maxListed = 50;

/** Returns the effects as elements. Rejects if the node no longer has the events of the block. */
export async function transactionEffects(
  node: ExploredNode,
  hash: string,
  blockNumber: number,
  signal: AbortSignal,
): Promise<HTMLElement[]> {
  const events = await readEvents(node, hash, blockNumber, signal);
  const items = events.map(itemOf).filter((item) => item !== undefined);
  return items.length === 0
    ? [note("No changes that your key may read.")]
    : [h("ul", { class: "keys" }, ...items.map((item) => h("li", {}, item)))];
}

/** Reads events until the stream reaches the latest block, at most for 15 s. */
async function readEvents(
  node: ExploredNode,
  hash: string,
  blockNumber: number,
  signal: AbortSignal,
): Promise<EffectEvent[]> {
  return await new Promise((resolve, reject) => {
    const events: EffectEvent[] = [];
    const source = new EventSource(node.urlOf(`events?fromBlock=${blockNumber}&transactions=${hash}`));
    const timer = setTimeout(() => end(), timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      source.close();
      resolve(events);
    };
    for (const kind of kinds) {
      source.addEventListener(kind, ({ data }: MessageEvent<string>) => events.push(JSON.parse(data) as EffectEvent));
    }
    // Sent when the stream has reached the latest block: all events of this block have arrived.
    source.addEventListener("progress", end);
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(timer);
        reject(new Error("This node no longer has the events of the block."));
      }
    });
    signal.addEventListener("abort", end);
  });
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
