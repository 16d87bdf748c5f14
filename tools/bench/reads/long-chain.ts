/** Measures how fast Chromium shows the views of the explorer on a long chain, and what they cost the node. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import type { Transaction } from "../../../gen/gatehouse/chain/v1/block_pb.js";
import { startProgress } from "../../../src/cli/terminal/progress.js";
import { testKey } from "../../../test/helpers/chain/keys.js";
import { insertBlocks, seedDatabase } from "../../../test/helpers/chain/seed.js";
import { createPublic, signTransaction } from "../../../test/helpers/chain/transactions.js";
import { launchBrowser, recordPage, whyNoBrowser } from "../../../test/helpers/process/browser.js";
import { authority, makeHome } from "../blocks.js";
import type { BenchSettings, Row } from "../row.js";
import { type ServerProcess, startGatehouse } from "../servers/server-process.js";
import { median } from "../statistics.js";

/** Key that owns all programs of the chain. */
const owner = testKey(2);
const maxPrograms = 1_000;

/** Chain in a node's directory. */
export interface LongChain {
  /** Number of its latest block. */
  readonly blocks: number;
  /** Number of programs, each created in a block of its own. */
  readonly programs: number;
  /** Flags that start a node on it. */
  readonly flags: readonly string[];
}

/**
 * Creates a chain with a signed block for each second until now. A tenth of the blocks, and at most 1,000, create a
 * program of one owner; the others are empty.
 */
export async function createLongChain(directory: string, blocks: number): Promise<LongChain> {
  const { dir, flags } = await makeHome(directory);
  const programs = Math.min(Math.ceil(blocks / 10), maxPrograms);
  const progress = startProgress("blocks", blocks);
  function* contents(): Generator<readonly Transaction[]> {
    for (let number = 1; number <= blocks; number++) {
      const program = Math.floor((number * programs) / blocks);
      const isFirst = program > Math.floor(((number - 1) * programs) / blocks);
      yield isFirst ? [signTransaction(owner, program, createPublic(`program ${program}`, "null"))] : [];
      progress.update(number);
    }
  }
  const startMs = Date.now() - blocks * 1_000;
  const settings = { perCommit: 5_000, timestampMsOf: (number: bigint) => BigInt(startMs) + number * 1_000n };
  await seedDatabase(dir, (database) => insertBlocks(database, authority, contents(), settings));
  progress.end();
  return { blocks, programs, flags };
}

/** View, and how to open and recognize it. */
interface ShownView {
  readonly name: string;
  /** Opens the view in the page, by default by a change of the fragment to `#route`. */
  readonly route?: string;
  readonly open?: (page: Page) => Promise<void>;
  /** Selector of an element that only this view has, with its content. */
  readonly shown: string;
}

/** Returns the overview at this URL, and the views that are opened from there. */
function viewsOf({ blocks, programs }: LongChain, url: string): ShownView[] {
  const middle = Math.ceil(blocks / 2);
  /** Names contain this number as well as the number of the last program, so that the search has several results. */
  const tenth = Math.floor(programs / 10);
  const row = (label: string, text: string | number): string =>
    `table[aria-label="${label}"] tbody tr:has-text("${text}")`;
  return [
    {
      name: "overview",
      open: async (page) => void (await page.goto(url)),
      shown: row("Recently changed programs", `program ${programs}`),
    },
    { name: "list of blocks", route: "/blocks", shown: row("Blocks", blocks) },
    {
      name: "its next page",
      open: (page) => page.getByRole("button", { name: "Next page: Blocks" }).click(),
      shown: row("Blocks", blocks - 25),
    },
    { name: "first block", route: "/block/1", shown: 'h1:text-is("Block 1")' },
    { name: "a block", route: `/block/${middle}`, shown: `h1:text-is("Block ${middle}")` },
    { name: "list of transactions", route: "/transactions", shown: row("Transactions", `program ${programs}`) },
    { name: "search by name", route: `/search/program ${tenth}`, shown: row("Results", `program ${tenth}`) },
    { name: "owner", route: `/owner/${owner.publicKey}`, shown: row("Transactions", `program ${programs}`) },
  ];
}

interface Measured {
  readonly ms: number;
  readonly nodeMs: number;
}

/**
 * Opens the overview in a new browser context, and each other view from there. Returns a row for each view. Throws if a
 * page reports an error.
 */
export async function measureViews(
  browser: Browser,
  node: ServerProcess,
  chain: LongChain,
  rounds: number,
  say: (what: string) => void,
): Promise<Row[]> {
  const results = new Map<string, Measured[]>();
  for (let round = 0; round < rounds; round++) {
    const context = await browser.newContext();
    // A busy machine is slow, which a measurement may show, but a test must not fail by.
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const { errors } = recordPage(page);
    const url = `http://127.0.0.1:${node.port}/explore`;
    for (const { name, route, shown, open } of viewsOf(chain, url)) {
      say(`${name}, round ${round + 1}`);
      const before = await node.usage();
      const startMs = performance.now();
      await (open === undefined ? page.evaluate(`location.hash = ${JSON.stringify(route)}`) : open(page));
      await page.locator(shown).first().waitFor();
      const ms = performance.now() - startMs;
      const nodeMs = ((await node.usage()).cpuUs - before.cpuUs) / 1_000;
      results.set(name, [...(results.get(name) ?? []), { ms, nodeMs }]);
      if (errors.length > 0) {
        throw new Error(`The view "${name}" reported: ${errors.join("; ")}`);
      }
    }
    await context.close();
  }
  return [...results].map(([name, measured]) => ({
    name,
    figures: {
      "shown ms": median(measured.map(({ ms }) => ms)),
      "node cpu ms": median(measured.map(({ nodeMs }) => nodeMs)),
    },
  }));
}

/** Builds the chain, and opens the views. */
export async function benchLongChain({ directory, chain: blocks, rounds, say }: BenchSettings): Promise<Row[]> {
  if (whyNoBrowser !== undefined) {
    return [{ name: "views", figures: {}, note: whyNoBrowser }];
  }
  const builtMs = performance.now();
  const chain = await createLongChain(join(directory, "long-chain"), blocks);
  const buildS = (performance.now() - builtMs) / 1_000;
  const node = await startGatehouse(chain.flags);
  try {
    const bootMs = performance.now() - builtMs - buildS * 1_000;
    const browser = await launchBrowser();
    try {
      const rows = await measureViews(browser, node, chain, rounds, say);
      const name = `with ${blocks.toLocaleString("en")} blocks, ${chain.programs.toLocaleString("en")} programs`;
      return [...rows, { name, figures: { "build s": buildS, "boot ms": bootMs } }];
    } finally {
      await browser.close();
    }
  } finally {
    await node.stop();
  }
}
