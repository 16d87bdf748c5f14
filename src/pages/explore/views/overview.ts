/** Shows what happens in the network: charts of its last hour or day, and the latest blocks, transactions and programs. */
import { sha256Hex } from "../../../../client/src/bytes.js";
import { readOperation } from "../../../base/describe-operation.js";
import type {
  BlocksAnswer,
  BlockSummary,
  ProgramSummary,
  SearchAnswer,
  TransactionBody,
  TransactionsAnswer,
  TransactionSummary,
} from "../answers.js";
import { activityCharts } from "../charts.js";
import { button, h } from "../dom.js";
import { liveList } from "../live-list.js";
import { watchBlocks } from "../live.js";
import { type ExploredNode, withQuery } from "../node.js";
import { changedProgram } from "../operation-words.js";
import { blockLink, link, messageOf, namedProgramLink, note, section, tell, timeAgo } from "../parts.js";
import type { Looking, View } from "../view.js";
import { short, visible } from "../words.js";

const maxRows = 10;
/** Number of transactions in which recently changed programs are looked for. */
const searchedTransactions = 50;

export async function viewOverview({ node, signal }: Looking): Promise<View> {
  const read = createReader(node, signal);
  const first = await read();
  const blocks = liveList<BlockSummary>({
    ...{ label: "Latest blocks", columns: ["Number", "Transactions", "When"], maxRows },
    keyOf: ({ hash }) => hash,
    rowOf: ({ number, transactionCount, timestamp }) => [
      blockLink(number),
      transactionCount ?? "not kept",
      timeAgo(timestamp),
    ],
  });
  const transactions = liveList<TransactionSummary>({
    ...{ label: "Latest transactions", columns: ["Operation", "Block"], maxRows },
    keyOf: ({ hash }) => hash,
    rowOf: ({ hash, body, blockNumber }) => [
      link({ kind: "transaction", hash }, lineOf(body), { title: hash }),
      blockLink(blockNumber),
    ],
  });
  const programs = liveList<ProgramSummary>({
    ...{ label: "Recently changed programs", columns: ["Name", "Changed"], maxRows },
    keyOf: ({ storageAddress, updatedAt }) => `${storageAddress} ${updatedAt}`,
    rowOf: ({ storageAddress, programName, updatedAt }) => [
      namedProgramLink(storageAddress, programName),
      timeAgo(Date.parse(updatedAt)),
    ],
  });
  const noPrograms = note("None that you may read is among the latest transactions.");
  const start = firstProgram(node);
  const show = (latest: Latest): void => {
    blocks.show(latest.blocks);
    transactions.show(latest.transactions);
    programs.show(latest.programs);
    noPrograms.hidden = latest.programs.length > 0;
    programs.element.hidden = latest.programs.length === 0;
    start.hidden = latest.transactions.length > 0;
    activity.hidden = lists.hidden = !start.hidden && latest.blocks.length === 0;
  };

  const { isPaused, control } = pauseButton(() => void renew());
  let isReading = false;
  let isStale = false;
  /** Reads at most one state at a time: blocks may come faster than the node responds. */
  async function renew(): Promise<void> {
    isStale = true;
    while (isStale && !isReading && !isPaused()) {
      isStale = false;
      isReading = true;
      await read().then(show, (error: unknown) => signal.aborted || tell(messageOf(error)));
      isReading = false;
    }
  }
  const activity = section("Activity", activityCharts(node, signal));
  const lists = h(
    "div",
    {},
    h("p", { class: "buttons" }, control),
    h(
      "div",
      { class: "columns" },
      section("Latest blocks", blocks.element, allOf("blocks")),
      section("Latest transactions", transactions.element, allOf("transactions")),
      section("Recently changed programs", programs.element, noPrograms),
    ),
  );
  show(first);
  let latest = first.blocks[0]?.number ?? 0;
  watchBlocks(node, signal, {
    onBlock(number) {
      if (number > latest) {
        latest = number;
        void renew();
      }
    },
    onTrouble: (error) => tell(error === undefined ? undefined : `Nothing new comes: ${messageOf(error)}`),
  });
  return { title: "Overview", contents: [start, activity, lists] };
}

/** Latest things of each kind, the latest first. */
interface Latest {
  readonly blocks: readonly BlockSummary[];
  readonly transactions: readonly TransactionSummary[];
  readonly programs: readonly ProgramSummary[];
}

/** Returns a function that reads the latest things. It requests only what it has not read yet. */
function createReader(node: ExploredNode, signal: AbortSignal): () => Promise<Latest> {
  let transactions: readonly TransactionSummary[] = [];
  /** Programs by the hash of the last transaction on each; undefined for those that the reader may not read. */
  let programs = new Map<string, ProgramSummary | undefined>();
  let latest: number | undefined;

  async function readTransactions(blocks: readonly BlockSummary[]): Promise<void> {
    const unread = blocks.filter(({ number }) => number > (latest ?? 0));
    const isGap = latest === undefined || unread.length === blocks.length;
    const count = isGap ? searchedTransactions : unread.reduce((sum, one) => sum + (one.transactionCount ?? 0), 0);
    if (count > 0) {
      const query = { pageSize: String(Math.min(count, searchedTransactions)) };
      const page = await node.ask<TransactionsAnswer>(withQuery("chain/transactions", query), signal);
      const hashes = new Set(page.transactions.map(({ hash }) => hash));
      const before = transactions.filter(({ hash }) => !hashes.has(hash));
      transactions = [...page.transactions, ...(isGap ? [] : before)].slice(0, searchedTransactions);
    }
    latest = blocks[0]?.number;
  }

  async function readPrograms(): Promise<void> {
    const lastOf = new Map<string, string>();
    for (const { hash, body } of transactions) {
      const address = changedProgram(body);
      if (address !== undefined && !lastOf.has(address) && lastOf.size < maxRows) {
        lastOf.set(address, hash);
      }
    }
    const entries = [...lastOf].map(async ([address, hash]) => {
      return [hash, programs.has(hash) ? programs.get(hash) : await findProgram(node, address, signal)] as const;
    });
    programs = new Map(await Promise.all(entries));
  }

  return async () => {
    const query = { pageSize: String(maxRows) };
    const { blocks } = await node.ask<BlocksAnswer>(withQuery("chain/blocks", query), signal);
    await readTransactions(blocks);
    await readPrograms();
    return { blocks, transactions, programs: [...programs.values()].filter((program) => program !== undefined) };
  };
}

/** Returns a link to the table of all. */
function allOf(kind: "blocks" | "transactions"): HTMLElement {
  return h("p", {}, link({ kind }, `All ${kind}`));
}

/** Describes an operation in few characters. */
function lineOf(body: TransactionBody | undefined): string {
  const operation = body && readOperation(body, sha256Hex);
  return operation === undefined
    ? "Not shown to you"
    : visible(
        `${operation.summary.slice(0, 120)} ${operation.target === undefined ? "" : short(operation.target.name)}`,
      );
}

/** Returns a program without its document, which may be long; undefined if the reader may not read it. */
async function findProgram(
  node: ExploredNode,
  address: string,
  signal: AbortSignal,
): Promise<ProgramSummary | undefined> {
  const { results } = await node.ask<SearchAnswer>(withQuery("search", { q: address }), signal);
  return results.find(({ program }) => program?.storageAddress === address)?.program;
}

function pauseButton(onResume: () => void) {
  let isPaused = false;
  const control = button("Pause", { "aria-pressed": "false" }, () => {
    isPaused = !isPaused;
    control.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) {
      onResume();
    }
  });
  return { control, isPaused: () => isPaused };
}

/** Returns what to do in a network without transactions. */
function firstProgram(node: ExploredNode): HTMLElement {
  const url = node.urlOf("./").replace(/\/$/, "");
  const steps = [
    "gatehouse keygen --out my.key",
    `gatehouse storage create notes --node ${url} --key my.key --access public --data '{"title": "Hello"}'`,
  ];
  return section(
    "Write the first program",
    h(
      "p",
      {},
      "Nobody has written to this network yet. Programs are documents that their owners change. In a terminal:",
    ),
    h("pre", { tabindex: 0 }, steps.join("\n")),
    h(
      "p",
      {},
      "It is shown here as soon as a block has it. The ",
      h("a", { href: node.urlOf("docs") }, "interface"),
      " lists all other ways.",
    ),
  );
}
