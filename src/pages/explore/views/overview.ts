/**
 * Shows the state of the network: totals, the latest blocks, transactions and programs, and charts of the last hour or day.
 */
import type {
  BlocksResponse,
  BlockSummary,
  ProgramSummary,
  RootResponse,
  SearchResponse,
  TransactionBody,
  TransactionsResponse,
  TransactionSummary,
} from "../responses.js";
import { activityCharts } from "../charts.js";
import { button, type Content, h, setText } from "../dom.js";
import { counted, escapeInvisible, grouped, secondsOf, sizeOf, truncate } from "../format.js";
import { liveList } from "../live-list.js";
import { watchBlocks } from "../live.js";
import { type ExploredNode, withQuery } from "../node.js";
import { changedProgram, operationLabel } from "../operation-text.js";
import {
  blockLink,
  link,
  messageOf,
  namedProgramLink,
  note,
  ownerLink,
  section,
  showNotice,
  tag,
  tiles,
  timeAgo,
} from "../parts.js";
import type { View, ViewContext } from "../view.js";

const maxRows = 10;
/** Number of latest blocks whose mean time and transactions are shown. */
const averagedBlocks = 25;
/** Maximum number of pending transactions in a response of the node. */
const maxPending = 200;
/** Number of latest transactions that are searched for recently changed programs. */
const searchedTransactions = 50;

export async function viewOverview({ node, signal }: ViewContext): Promise<View> {
  const readLatest = createReader(node, signal);
  const first = await readLatest();
  const blocks = liveList<BlockSummary>({
    ...{ label: "Latest blocks", columns: ["Number", "Transactions", "Time"], maxRows, isShort: true },
    keyOf: ({ hash }) => hash,
    rowOf: ({ number, transactionCount, timestamp }) => [
      blockLink(number),
      transactionCount ?? "not stored",
      timeAgo(timestamp),
    ],
  });
  const transactions = liveList<TransactionSummary>({
    ...{ label: "Latest transactions", columns: ["Operation", "Block", "Time"], maxRows },
    keyOf: ({ hash }) => hash,
    rowOf: ({ hash, body, blockNumber, timestamp }) => [
      h("span", {}, link({ kind: "transaction", name: hash }, operationLabel(body), hash), ...privateMark(body)),
      blockLink(blockNumber),
      timeAgo(timestamp),
    ],
  });
  const programs = liveList<ProgramSummary>({
    ...{ label: "Recently changed programs", columns: ["Name", "Owner", "Size", "Changed"], maxRows },
    keyOf: ({ storageAddress, updatedAt }) => `${storageAddress} ${updatedAt}`,
    rowOf: ({ storageAddress, programName, owner, sizeBytes, updatedAt }) => [
      namedProgramLink(storageAddress, programName),
      ownerLink(owner),
      sizeOf(sizeBytes),
      timeAgo(Date.parse(updatedAt)),
    ],
  });
  const noPrograms = note("The latest transactions changed no program that you may read.");
  const help = firstProgramHelp(node);
  const summary = h("p", { class: "lead" });
  const numbers = h("div");
  const show = (latest: Latest): void => {
    blocks.show(latest.blocks);
    transactions.show(latest.transactions);
    programs.show(latest.programs);
    noPrograms.hidden = latest.programs.length > 0;
    programs.element.hidden = latest.programs.length === 0;
    help.hidden = latest.transactions.length > 0;
    activity.hidden = lists.hidden = !help.hidden && latest.blocks.length === 0;
    setText(summary, summaryOf(latest));
    numbers.replaceChildren(numbersOf(latest));
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
    h(
      "div",
      { class: "columns" },
      section("Latest blocks", blocks.element, more("blocks", "All blocks", control)),
      section("Latest transactions", transactions.element, more("transactions", "All transactions")),
    ),
    section(
      "Recently changed programs",
      programs.element,
      noPrograms,
      more("programs", "Transactions that create programs"),
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
  return { title: "Overview", contents: [summary, numbers, help, lists, activity] };
}

/** Returns the link below a list to the view with all items. */
function more(
  kind: "blocks" | "transactions" | "programs",
  text: string,
  ...others: readonly HTMLElement[]
): HTMLElement {
  return h("p", { class: "more" }, link({ kind }, text), ...others);
}

/** Returns the badge of a transaction that the reader may not read. */
function privateMark(body: TransactionBody | undefined): Content[] {
  return body === undefined ? [" ", tag("private", "private")] : [];
}

/** Returns the mean time between the listed blocks; undefined for fewer than two. */
function meanBlockMs({ blocks }: Latest): number | undefined {
  const [latest, oldest] = [blocks[0], blocks.at(-1)];
  return latest === undefined || oldest === undefined || latest === oldest
    ? undefined
    : (latest.timestamp - oldest.timestamp) / (latest.number - oldest.number);
}

/** Describes the network in a sentence. */
function summaryOf(latest: Latest): string {
  const { network, peers, health } = latest;
  const [number, mean] = [latest.blocks[0]?.number ?? 0, meanBlockMs(latest)];
  const name = network === undefined ? "This network" : `The network ${escapeInvisible(truncate(network, 100))}`;
  const pace = mean === undefined ? "" : `, lately one every ${secondsOf(mean)}`;
  const state = health === undefined ? "" : ` Its status is ${health}.`;
  return `${name} has ${counted(number, "block")}${pace}. This node knows ${counted(peers, "peer")}.${state}`;
}

/** Returns the totals of the network. */
function numbersOf(latest: Latest): HTMLElement {
  const { blocks, pending, leafCount, peers } = latest;
  const mean = meanBlockMs(latest);
  const inBlocks = blocks.reduce((sum, { transactionCount }) => sum + (transactionCount ?? 0), 0);
  return tiles({
    Blocks: grouped(blocks[0]?.number ?? 0),
    "Mean block time": mean === undefined ? "unknown" : secondsOf(mean),
    [`Transactions in the last ${counted(blocks.length, "block")}`]: grouped(inBlocks),
    "Pending transactions": `${grouped(pending)}${pending === maxPending ? " or more" : ""}`,
    Commitments: link({ kind: "tree" }, grouped(leafCount)),
    Peers: link({ kind: "peers" }, grouped(peers)),
  });
}

/** Latest items of each kind, latest first. */
interface Latest {
  readonly blocks: readonly BlockSummary[];
  readonly transactions: readonly TransactionSummary[];
  readonly programs: readonly ProgramSummary[];
  /** Number of transactions that wait for a block, at most 200. */
  readonly pending: number;
  /** Number of leaves of the commitment tree. */
  readonly leafCount: number;
  readonly peers: number;
  /** Name of the network; undefined if it has none. */
  readonly network: string | undefined;
  /** Status of the node; undefined if it does not report one. */
  readonly health: string | undefined;
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

  /** Reads a value that the view can do without. */
  async function readOr<T>(path: string, missing: T): Promise<T> {
    return await node.fetchJson<T>(path, signal).catch(() => missing);
  }
  const named = readOr<{ readonly name?: unknown }>("genesis", {});

  return async () => {
    const query = { pageSize: String(averagedBlocks) };
    const { blocks } = await node.fetchJson<BlocksResponse>(withQuery("chain/blocks", query), signal);
    await readTransactions(blocks);
    const [{ transactions: pending }, { leafCount }, peers, { name }, health] = await Promise.all([
      readOr<{ readonly transactions: readonly unknown[] }>(`chain/pending?limit=${maxPending}`, { transactions: [] }),
      readOr<Pick<RootResponse, "leafCount">>("zk/merkle-root", { leafCount: 0 }),
      readOr<readonly unknown[]>("peerlist", []),
      named,
      node.fetchHealth(),
      readPrograms(),
    ]);
    return {
      ...{ blocks, transactions, leafCount, pending: pending.length, peers: peers.length, health: health?.status },
      programs: [...programs.values()].filter((program) => program !== undefined),
      network: typeof name === "string" && name.trim() !== "" ? name : undefined,
    };
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
