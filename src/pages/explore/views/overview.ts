/** Shows the latest blocks as they arrive, and the state of the network. */
import type { BlocksAnswer, BlockSummary, HeadAnswer, HealthAnswer, RootAnswer } from "../answers.js";
import { button, type Content, h, say } from "../dom.js";
import { watchBlocks } from "../live.js";
import { type ExploredNode, withQuery } from "../node.js";
import { blockLink, code, facts, link, messageOf, ownerLink, section, table, tell, timeAgo } from "../parts.js";
import type { Looking, View } from "../view.js";
import { short } from "../words.js";

const pageSize = 20;

export async function viewOverview({ node, signal }: Looking): Promise<View> {
  const [head, health, root, first] = await Promise.all([
    node.ask<HeadAnswer>("chain/head", signal),
    // One that is failing answers with its health, too.
    node.ask<HealthAnswer>("health", signal).catch(() => undefined),
    node.ask<RootAnswer>("zk/merkle-root", signal).catch(() => undefined),
    askBlocks(node, undefined, signal),
  ]);
  const newest = h("span", {}, String(head.number));
  return {
    title: "Overview",
    contents: [
      facts({
        "Newest block": newest,
        Node: h(
          "span",
          {},
          h("a", { href: node.urlOf("status") }, health?.status ?? "failing"),
          `, ${health?.version ?? ""}`,
        ),
        Network: code(head.genesisHash),
        Commitments: root && link({ kind: "tree", commitment: undefined }, String(root.leafCount)),
      }),
      section("Newest blocks", ...blockList(node, first, signal, newest)),
    ],
  };
}

async function askBlocks(
  node: ExploredNode,
  pageToken: string | undefined,
  signal: AbortSignal,
): Promise<BlocksAnswer> {
  return await node.ask(withQuery("chain/blocks", { pageSize: String(pageSize), pageToken }), signal);
}

function rowOf({ number, timestamp, transactionCount, hash, proposer }: BlockSummary): Content[] {
  return [
    blockLink(number),
    timeAgo(timestamp),
    transactionCount ?? "not kept",
    h("a", { href: blockLink(number).getAttribute("href")!, tabindex: -1, title: hash }, code(short(hash))),
    ownerLink(proposer),
  ];
}

/** Returns the list of blocks, with a button that pauses its updates. */
function blockList(node: ExploredNode, first: BlocksAnswer, signal: AbortSignal, newestShown: Element): HTMLElement[] {
  const { element, add } = table(
    "Newest blocks",
    ["Number", "When", "Transactions", "Hash", "Made by"],
    first.blocks.map(rowOf),
  );
  let newest = first.blocks[0]?.number ?? 0;
  let oldest: string | undefined = first.nextPageToken;
  let isPaused = false;

  const come = async (): Promise<void> => {
    const { blocks } = await askBlocks(node, undefined, signal);
    const unknown = blocks.filter(({ number }) => number > newest);
    // Where more came than a page holds there would be a gap: the list begins again.
    if (unknown.length === blocks.length) {
      element.querySelector("tbody")!.replaceChildren();
      oldest = undefined;
    }
    newest = blocks[0]?.number ?? newest;
    add(unknown.map(rowOf), "first");
  };
  watchBlocks(node, signal, {
    onBlock(number) {
      say(newestShown, String(number));
      if (!isPaused && number > newest) {
        come().catch((error: unknown) => tell(messageOf(error)));
      }
    },
    onTrouble: (error) => tell(error === undefined ? undefined : `Nothing new comes: ${messageOf(error)}`),
  });

  const pause = button("Pause", { "aria-pressed": "false" }, () => {
    isPaused = !isPaused;
    pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) {
      come().catch((error: unknown) => tell(messageOf(error)));
    }
  });
  const older = button("Show older blocks", {}, async () => {
    const page = await askBlocks(node, oldest, signal);
    add(page.blocks.map(rowOf));
    oldest = page.nextPageToken;
    older.hidden = oldest === undefined;
  });
  older.hidden = oldest === undefined;
  return [h("p", {}, pause), element, h("p", {}, older)];
}
