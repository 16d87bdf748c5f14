/** Tests the layout of the pages: nothing clips, hashes and times stay in one line, and all pages are in the navigation. */
import type { ExecutionContext } from "ava";
import { addCommitment, appendItem, createGatehouse, createProgram, jsonText, keyFromSeed } from "gatehouse-client";
import type { Browser, Page } from "playwright-core";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { heading, launchBrowser, openLoaded, openPage, whyNoBrowser } from "../helpers/process/browser.js";

const testBrowser = testUnless(whyNoBrowser);
const file = fileTeardown();
let browser: Browser;
let node: TestNode;
let hashes: string[];
let address: string;
const signer = keyFromSeed("5e".repeat(32));
const element = `0x${"7".padStart(64, "0")}`;

testBrowser.before(async (t) => {
  t.timeout(300_000, "a browser and a node start slowly on a busy machine");
  browser = await launchBrowser();
  node = await startMember(file);
  const client = createGatehouse(node.rpcUrl, { signer });
  file.teardown(() => client.close());
  const created = await client.submit(
    createProgram({ name: "notes", data: jsonText('{"title": "Hello", "list": []}'), access: "public" }),
  );
  await client.waitFor(created.hash);
  address = created.storageAddress;
  hashes = [created.hash];
  for (const operation of [
    appendItem(address, "list", "an item"),
    addCommitment(element),
    createProgram({ name: "diary", data: jsonText("{}"), access: "owner" }),
  ]) {
    const { hash } = await client.submit(operation);
    await client.waitFor(hash);
    hashes.push(hash);
  }
});
testBrowser.after(() => browser.close());

/** Returns what the page cuts off, breaks inside, or shows beyond the window. */
const faults = `(() => {
  const shown = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const name = (element) => element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 60);
  const clipped = [...document.querySelectorAll("main *, header *")]
    .filter(shown)
    .filter((element) => !element.closest(".unseen, svg, .u-wrap, thead, textarea, input, select, pre, #shell-network"))
    .filter((element) => getComputedStyle(element).overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1)
    .map((element) => "clips " + name(element));
  const broken = [...document.querySelectorAll(".copyable code, .digits, time, .times > *, .tag")]
    .filter(shown)
    .filter((element) => new Set([...element.getClientRects()].map(({ top }) => Math.round(top / 4))).size > 1)
    .map((element) => "breaks " + name(element));
  const over = [...document.querySelectorAll("main code, main time, main td, main dd")]
    .filter(shown)
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => "exceeds " + name(element));
  return [...new Set([...clipped, ...broken, ...over])];
})()`;

for (const [width, height] of [
  [1280, 800],
  [400, 800],
  [800, 1000],
] as const) {
  testBrowser.serial(`nothing clips, and hashes and times stay in one line, at ${width} px`, async (t) => {
    t.timeout(300_000, "a browser is slow on a machine with two cores");
    const { page, errors } = await openLoaded(t, browser, `${node.rpcUrl}/explore`, { viewport: { width, height } });
    const { publicKey } = signer;
    for (const [route, title] of [
      ["/", "Overview"],
      ["/blocks", "Blocks"],
      ["/transactions", "Transactions"],
      ["/block/2", "Block 2"],
      ...hashes.map((hash) => [`/transaction/${hash}`, `Transaction ${hash.slice(0, 10)}…${hash.slice(-4)}`] as const),
      [`/program/${address}`, "notes"],
      [`/owner/${publicKey}`, /^Owner/],
      ["/tree", "Commitment tree"],
      ["/peers", "Peers"],
      ["/forks", "Forks"],
      ["/log", "Public log"],
      ["/keys", "Keys"],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
      await heading(page, title).waitFor();
      t.deepEqual(await page.evaluate(faults), [], route);
    }
    for (const path of ["/status", "/latest"]) {
      await page.goto(`${node.rpcUrl}${path}`);
      await page.locator("tbody tr").first().waitFor();
      t.deepEqual(await page.evaluate(faults), [], path);
    }
    t.deepEqual(errors, []);
  });
}

testBrowser.serial("the first screen of a phone has the state of the network and the newest block", async (t) => {
  const { page } = await openLoaded(t, browser, `${node.rpcUrl}/explore`, { viewport: { width: 400, height: 800 } });
  await heading(page, "Overview").waitFor();
  const bottomOf = async (selector: string): Promise<number> => {
    const box = (await page.locator(selector).first().boundingBox())!;
    return box.y + box.height;
  };
  t.true((await bottomOf("header.shell")) < 160);
  t.true((await bottomOf(".tiles")) < 800);
  t.true((await bottomOf(".live tbody tr")) < 800);
  t.true((await page.locator(".chart").first().boundingBox())!.y > (await bottomOf(".live tbody tr")));
  await page.locator(".tiles").getByText("Mean block time").waitFor();
  await page.getByText(/^The network .* blocks/).waitFor();
});

/** Returns the pages that the explorer knows, by the texts of their links. */
const links = ["Overview", "Blocks", "Transactions", "Tree", "Write", "Decode", "Keys"].concat([
  "Status",
  "Peers",
  "Forks",
  "Snapshots",
  "Log",
  "API",
]);

const namesIn = async (page: Page): Promise<string[]> =>
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allTextContents();

testBrowser.serial("one navigation leads to all pages, also on a phone and without JavaScript", async (t) => {
  for (const width of [1280, 400]) {
    const { page } = await openLoaded(t, browser, `${node.rpcUrl}/status`, { viewport: { width, height: 800 } });
    for (const name of links) {
      if (width === 400) {
        await page.getByRole("button", { name: "Menu" }).click();
      }
      t.deepEqual(await namesIn(page), links);
      const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
      await link.click();
      await page.locator("#pages [aria-current=page]").getByText(name, { exact: true }).waitFor({ state: "attached" });
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      t.is(await page.getByRole("heading", { level: 1, name: "Nothing here" }).count(), 0, name);
    }
  }
  const { page } = await openLoaded(t, browser, `${node.rpcUrl}/latest`, { javaScriptEnabled: false });
  t.deepEqual(await namesIn(page), links);
});

testBrowser.serial("the navigation marks the list of the shown item", async (t) => {
  const { page } = await openLoaded(t, browser, `${node.rpcUrl}/explore`);
  const current = page.getByRole("navigation", { name: "Pages" }).locator("[aria-current]");
  for (const [route, title, list] of [
    ["/block/2", "Block 2", "Blocks"],
    [`/transaction/${hashes[0]}`, /^Transaction /, "Transactions"],
    [`/tree/${element}`, /^Commitment /, "Tree"],
  ] as const) {
    await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
    await heading(page, title).waitFor();
    t.deepEqual(await current.allTextContents(), [list]);
    t.is(await current.getAttribute("aria-current"), "true");
  }
  await page.evaluate('location.hash = "/programs"');
  await heading(page, "Transactions").waitFor();
  t.is(await page.getByLabel("Kind").inputValue(), "Create program");
  await page.getByText('Creates the program "notes"').waitFor();
  t.deepEqual(await current.allTextContents(), ["Transactions"]);
});

testBrowser.serial("axes of charts have whole numbers", async (t) => {
  const { page, go } = await openPage(t, browser, `${node.rpcUrl}/explore`);
  const now = Date.now();
  const minutes = Array.from({ length: 50 }, (_, i) => i);
  const flat = (value: number): number[] => minutes.map(() => value);
  await page.route("**/status/data", (route) =>
    route.fulfill({
      json: {
        ...{ database: "SQLite", everyMs: 60_000, status: minutes.map(() => "ok"), behind: flat(0) },
        ...{ atMs: minutes.map((i) => now - (49 - i) * 60_000), block: minutes.map((i) => 7 * i) },
        ...{ pending: flat(1), transactions: flat(4), commitments: flat(2), online: flat(1) },
      },
    }),
  );
  await page.addInitScript(`window.drawn = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (...values) {
      drawn.push(values[0]);
      return fillText.apply(this, values);
    };`);
  await go();
  await page.getByText("One point a minute, since the node started.").waitFor();
  await page.waitForFunction("drawn.length > 20");
  const texts = await page.evaluate<string[]>("drawn");
  const axes = texts.filter((text) => !text.includes(":"));
  t.true(axes.length > 10);
  t.deepEqual(
    axes.filter((text) => !/^\d+( s)?$/.test(text)),
    [],
  );
});

testBrowser.serial("the status page has links to what it names, and copies keys and hashes", async (t) => {
  const { page, context } = await openLoaded(t, browser, `${node.rpcUrl}/status`);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page
    .locator("#node")
    .getByRole("button", { name: /^Copy / })
    .click();
  t.is(await page.evaluate("navigator.clipboard.readText()"), await page.locator("#node code").textContent());
  t.is(await page.getByRole("button", { name: /^Copy / }).count(), 3);
  for (const [name, title] of [
    [/^All peers/, "Peers"],
    [/^All lines/, "Public log"],
    ["Sign in", "Keys"],
  ] as const) {
    await page.goto(`${node.rpcUrl}/status`);
    await page.getByRole("link", { name }).click();
    await heading(page, title).waitFor();
  }
});

/** Opens the list of transactions. */
async function openTransactions(t: ExecutionContext): Promise<Page> {
  const { page } = await openLoaded(t, browser, `${node.rpcUrl}/explore#/transactions`);
  await heading(page, "Transactions").waitFor();
  return page;
}

testBrowser.serial("the list of transactions has filters by kind and sender, and marks private ones", async (t) => {
  const page = await openTransactions(t);
  const rows = page.getByRole("table", { name: "Transactions" }).locator("tbody tr");
  t.is(await rows.count(), 4);
  await page.getByLabel("Kind").selectOption("Append item");
  await page.getByText("1 row. 4 rows searched.").waitFor();
  t.is(await rows.locator(".tag").textContent(), "Append item");
  await page.getByLabel("Kind").selectOption("Private");
  await page.getByText("1 row. 4 rows searched.").waitFor();
  t.is(await rows.locator(".tag.private").textContent(), "Private");
  await page.getByLabel("Kind").selectOption("");
  // The node looks a complete key up in its index.
  const request = page.waitForRequest((sent) => sent.url().includes("sender="));
  await page.getByLabel("Sender contains").fill(signer.publicKey);
  t.is(new URL((await request).url()).searchParams.get("sender"), signer.publicKey);
  await page.getByText("3 rows. 3 rows searched.").waitFor();
  await page.getByLabel("Sender contains").fill("ffffffff");
  await page.getByText("No row matches. 4 rows searched.").waitFor();
});
