/** Reads the effects of a transaction from the events of its block. */
import { h } from "../dom.js";
import type { ExploredNode } from "../node.js";
import { changeWords } from "../operation-words.js";
import { commitmentLink, given, note, nullifierLink, programLink, shortHash } from "../parts.js";

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
export async function effectsOf(
  node: ExploredNode,
  hash: string,
  blockNumber: number,
  signal: AbortSignal,
): Promise<HTMLElement[]> {
  const events = await readEvents(node, hash, blockNumber, signal);
  const items = events.map(itemOf).filter((item) => item !== undefined);
  return items.length === 0
    ? [note("None that your key may read.")]
    : [h("ul", { class: "keys" }, ...items.map((item) => h("li", {}, item)))];
}

async function readEvents(
  node: ExploredNode,
  hash: string,
  blockNumber: number,
  signal: AbortSignal,
): Promise<EffectEvent[]> {
  return await new Promise((resolve, reject) => {
    const found: EffectEvent[] = [];
    const source = new EventSource(node.urlOf(`events?fromBlock=${blockNumber}&transactions=${hash}`));
    const timer = setTimeout(() => end(), timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      source.close();
      resolve(found);
    };
    for (const kind of kinds) {
      source.addEventListener(kind, ({ data }: MessageEvent<string>) => found.push(JSON.parse(data) as EffectEvent));
    }
    // The stream has reached the latest block, so that the events of this one are complete.
    source.addEventListener("progress", end);
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(timer);
        reject(new Error("The node does not keep the events of its block."));
      }
    });
    signal.addEventListener("abort", end);
  });
}

function itemOf({ program, nullifier, commitments }: EffectEvent): HTMLElement | undefined {
  if (program !== undefined) {
    const { storageAddress, change, fields } = program;
    const listed = fields.slice(0, maxListed).join(", ");
    const rest = fields.length > maxListed ? `, and ${fields.length - maxListed} more` : "";
    return h(
      "span",
      {},
      `${changeWords(change)}: `,
      programLink(storageAddress),
      ...(fields.length === 0 ? [] : [" ", given(`${listed}${rest}`, 1_000)]),
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
