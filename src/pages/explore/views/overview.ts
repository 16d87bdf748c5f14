/**
 * Shows the activity of the network: charts of the last hour or day, and the latest blocks, transactions and programs.
 */
import type {
  BlocksResponse,
  BlockSummary,
  ProgramSummary,
  SearchResponse,
  TransactionsResponse,
  TransactionSummary,
} from "../responses.js";
import { activityCharts } from "../charts.js";
import { button, h } from "../dom.js";
import { liveList } from "../live-list.js";
import { watchBlocks } from "../live.js";
import { type ExploredNode, withQuery } from "../node.js";
import { changedProgram, operationLabel } from "../operation-text.js";
import { blockLink, link, messageOf, namedProgramLink, note, section, showNotice, timeAgo } from "../parts.js";
import type { View, ViewContext } from "../view.js";

const maxRows = 10;
/** Number of latest transactions that are searched for recently changed programs. */
const searchedTransactions = 50;

export async function viewOverview({ node, signal }: ViewContext): Promise<View> {
  const readLatest = createReader(node, signal);
  const first = await readLatest();
  const blocks = liveList<BlockSummary>({
    ...{ label: "Latest blocks", columns: ["Number", "Transactions", "Time"], maxRows },
    keyOf: ({ hash }) => hash,
    rowOf: ({ number, transactionCount, timestamp }) => [
      blockLink(number),
      transactionCount ?? "not stored",
      timeAgo(timestamp),
    ],
  });
  const transactions = liveList<TransactionSummary>({
    ...{ label: "Latest transactions", columns: ["Operation", "Block"], maxRows },
    keyOf: ({ hash }) => hash,
    rowOf: ({ hash, body, blockNumber }) => [
      link({ kind: "transaction", name: hash }, operationLabel(body), hash),
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
  const noPrograms = note("The latest transactions changed no program that you may read.");
  const help = firstProgramHelp(node);
  const show = (latest: Latest): void => {
    blocks.show(latest.blocks);
    transactions.show(latest.transactions);
    programs.show(latest.programs);
    noPrograms.hidden = latest.programs.length > 0;
    programs.element.hidden = latest.programs.length === 0;
    help.hidden = latest.transactions.length > 0;
    activity.hidden = lists.hidden = !help.hidden && latest.blocks.length === 0;
  };

  const { isPaused, control } = pauseButton(() => void refresh());
  let isReading = false;
  let isStale = false;
  /** Loads and shows the latest items. Runs one load at a time, since blocks may arrive faster than responses. */
  async function refresh(): Promise<void> {
    isStale = true;
    while (isStale && !isReading && !isPaused()) {
      isStale = false;
      isReading = true;
      await readLatest().then(show, (error: unknown) => signal.aborted || showNotice(messageOf(error)));
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
      section("Latest blocks", blocks.element, h("p", {}, link({ kind: "blocks" }, "All blocks"))),
      section(
        "Latest transactions",
        transactions.element,
        h("p", {}, link({ kind: "transactions" }, "All transactions")),
      ),
      section("Recently changed programs", programs.element, noPrograms),
    ),
  );
  show(first);
  let latestNumber = first.blocks[0]?.number ?? 0;
  watchBlocks(node, signal, {
    onBlock(number) {
      if (number > latestNumber) {
        latestNumber = number;
        void refresh();
      }
    },
    onError: (error) => showNotice(error === undefined ? undefined : `No updates: ${messageOf(error)}`),
  });
  return { title: "Overview", contents: [help, activity, lists] };
}

/** Latest items of each kind, latest first. */
interface Latest {
  readonly blocks: readonly BlockSummary[];
  readonly transactions: readonly TransactionSummary[];
  readonly programs: readonly ProgramSummary[];
}

/** Returns a function that loads the latest items. It requests only items that an earlier call did not load. */
function createReader(node: ExploredNode, signal: AbortSignal): () => Promise<Latest> {
  let transactions: readonly TransactionSummary[] = [];
  /**
   * Programs by the hash of the last transaction that changed each; undefined if the reader may not read the program.
   */
  let programs = new Map<string, ProgramSummary | undefined>();
  let latest: number | undefined;

  async function readTransactions(blocks: readonly BlockSummary[]): Promise<void> {
    const unread = blocks.filter(({ number }) => number > (latest ?? 0));
    const isGap = latest === undefined || unread.length === blocks.length;
    const count = isGap
      ? searchedTransactions
      : unread.reduce((sum, { transactionCount }) => sum + (transactionCount ?? 0), 0);
    if (count > 0) {
      const query = { pageSize: String(Math.min(count, searchedTransactions)) };
      const page = await node.fetchJson<TransactionsResponse>(withQuery("chain/transactions", query), signal);
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
    const { blocks } = await node.fetchJson<BlocksResponse>(withQuery("chain/blocks", query), signal);
    await readTransactions(blocks);
    await readPrograms();
    return { blocks, transactions, programs: [...programs.values()].filter((program) => program !== undefined) };
  };
}

/** Returns a program without its document, which may be long; undefined if the reader may not read it. */
async function findProgram(
  node: ExploredNode,
  address: string,
  signal: AbortSignal,
): Promise<ProgramSummary | undefined> {
  const { results } = await node.fetchJson<SearchResponse>(withQuery("search", { q: address }), signal);
  return results.find(({ program }) => program?.storageAddress === address)?.program;
}

/** Creates the button that stops and continues the updates of the lists. */
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

/** Returns instructions for a network without transactions. */
function firstProgramHelp(node: ExploredNode): HTMLElement {
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
      "This network has no transactions yet. Programs are documents that their owners can change. Create one ",
      link({ kind: "new" }, "in this browser"),
      ", or in a terminal:",
    ),
    h("pre", { tabindex: 0 }, steps.join("\n")),
    h(
      "p",
      {},
      "The program appears here as soon as it is in a block. The ",
      h("a", { href: node.urlOf("docs") }, "interface"),
      " lists all other operations.",
    ),
  );
}
