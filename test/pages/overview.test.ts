/** Tests the overview of the explorer in a browser: charts, latest items, and an empty network. */
import type { ExecutionContext } from "ava";
import { appendItem, createGatehouse, createProgram, type Gatehouse, jsonText, keyFromSeed } from "gatehouse-client";
import type { Browser, Page } from "playwright-core";
import { launchBrowser, openPage, whyNoBrowser } from "../helpers/process/browser.js";
import { allVariants, inspect } from "../helpers/process/pages.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

let node: TestNode;
let client: Gatehouse;
let browser: Browser;
const file = fileTeardown();
const testBrowser = testUnless(whyNoBrowser);
testBrowser.before(async () => {
  node = await startMember(file);
  client = createGatehouse(node.rpcUrl, { signer: keyFromSeed("5c".repeat(32)) });
  file.teardown(() => client.close());
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

/**
 * Returns a history of one day: a block every 2 s, 90 transactions a minute, and one hour in which the node did not
 * run.
 */
function createHistory(nowMs: number, points = 1440) {
  const ages = Array.from({ length: 1440 }, (_, i) => 1439 - i).filter(
    (ago) => ago < points && (ago < 300 || ago >= 360),
  );
  return {
    ...{ database: "SQLite", everyMs: 60_000 },
    atMs: ages.map((ago) => nowMs - ago * 60_000),
    status: ages.map(() => "ok"),
    block: ages.map((ago) => (1440 - ago) * 30),
    behind: ages.map(() => 0),
    pending: ages.map((ago) => (ago === 10 ? 40 : 4)),
    transactions: ages.map((ago) => (ago === 5 ? 240 : 90)),
    commitments: ages.map((ago) => 5000 - ago),
    online: ages.map(() => 3),
  };
}

async function open(t: ExecutionContext, history?: object) {
  const opened = await openPage(t, browser, `${node.rpcUrl}/explore`);
  if (history !== undefined) {
    await opened.page.route("**/status/data", (route) => route.fulfill({ json: history }));
  }
  await opened.go();
  return opened;
}

const rowsOf = (page: Page, name: string) => page.getByRole("table", { name, exact: true }).locator("tbody tr");
const submit = async (name: string, access: "public" | "owner" = "public") => {
  const { hash, storageAddress } = await client.submit(createProgram({ name, data: jsonText('{"list": []}'), access }));
  await client.waitFor(hash);
  return storageAddress;
};

testBrowser.serial("shows how to create the first program of an empty network, and then the program", async (t) => {
  const { page, errors } = await open(t);
  await page.getByRole("heading", { name: "Write the first program" }).waitFor();
  await page.getByText(`gatehouse storage create notes --node ${node.rpcUrl}`).waitFor();
  await inspect(t, page, "overview-empty", ["desktop light"]);
  await submit("first");
  await rowsOf(page, "Recently changed programs").getByRole("link", { name: "first" }).waitFor();
  t.true(await page.getByRole("heading", { name: "Write the first program" }).isHidden());
  t.deepEqual(errors, []);
});

testBrowser.serial("adds blocks, transactions and programs at the top without moving other elements", async (t) => {
  const markup = `<img src=x onerror="document.title='markup'"> \u202egnp`;
  for (let i = 0; i < 12; i++) {
    await submit(`program ${i}`);
  }
  const list = await submit("list");
  const { page, errors } = await open(t);
  await rowsOf(page, "Recently changed programs").getByRole("link", { name: "list", exact: true }).waitFor();
  for (const name of ["Latest blocks", "Latest transactions", "Recently changed programs"]) {
    t.is(await rowsOf(page, name).count(), 10, name);
  }
  const layout = () =>
    page.evaluate(`JSON.stringify([...document.querySelectorAll("h2, .live")].map((element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      return width === 0 ? [] : [x, y + scrollY, width, height];
    }))`);
  const before = await layout();
  // The focused row keeps its element.
  const link = rowsOf(page, "Recently changed programs").getByRole("link", { name: "program 11" });
  await link.focus();
  await submit(markup);
  const { hash } = await client.submit(appendItem(list, "list", 1));
  await client.waitFor(hash);
  await rowsOf(page, "Latest transactions").first().getByText('Appends an item to the field "list" of').waitFor();
  await rowsOf(page, "Recently changed programs").first().getByRole("link", { name: "list", exact: true }).waitFor();
  t.is(
    await rowsOf(page, "Recently changed programs").nth(1).getByRole("link").first().textContent(),
    markup.replace("\u202e", "\\u202e"),
  );
  t.is(await rowsOf(page, "Recently changed programs").getByRole("link", { name: "list", exact: true }).count(), 1);
  for (const name of ["Latest blocks", "Latest transactions", "Recently changed programs"]) {
    t.is(await rowsOf(page, name).count(), 10, name);
  }
  t.is(await layout(), before);
  t.is(await page.evaluate("document.activeElement.textContent"), "program 11");
  // Shows only the transaction of a program that the reader may not read.
  await submit("diary", "owner");
  await rowsOf(page, "Latest transactions").first().getByText("Not shown to you").waitFor();
  t.is(await page.getByText("diary").count(), 0);
  t.is(await page.locator("img").count(), 0);
  t.deepEqual(errors, []);
});

testBrowser.serial("lists all blocks and all transactions in tables with CSV export", async (t) => {
  const { page, errors } = await open(t);
  for (const [link, heading] of [
    ["All blocks", "Blocks"],
    ["All transactions", "Transactions"],
  ] as const) {
    await page.getByRole("link", { name: link }).click();
    await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
    t.true((await rowsOf(page, heading).count()) > 10);
    await rowsOf(page, heading).last().getByRole("link", { name: "1", exact: true }).waitFor();
    await page.getByRole("button", { name: "CSV" }).waitFor();
    await inspect(t, page, `all-${heading.toLowerCase()}`, allVariants);
    await page.getByRole("link", { name: "Gatehouse" }).click();
  }
  t.deepEqual(errors, []);
});

testBrowser.serial("charts show the last hour and the last day, by pointer, by arrow keys and as tables", async (t) => {
  t.timeout(300_000, "axe checks each element in each variant of the page");
  const { page, errors } = await open(t, createHistory(Date.now()));
  const chart = page.getByRole("figure").filter({ hasText: "Transactions a minute" });
  const plot = chart.getByRole("img");
  const now = chart.locator(".now");
  await now.filter({ hasText: /^90$/ }).waitFor();
  t.is(await page.getByRole("figure").count(), 6);
  t.is(
    await plot.getAttribute("aria-label"),
    "Transactions a minute, last hour: 90 to 240. Arrow keys read single values.",
  );
  // Arrow keys: the fifth point before the last.
  await plot.focus();
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press("ArrowLeft");
  }
  await now.filter({ hasText: /^240 at \d/ }).waitFor();
  t.is(await now.getAttribute("aria-live"), "polite");
  await page.keyboard.press("End");
  await now.filter({ hasText: /^90$/ }).waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Tab");
  await now.filter({ hasText: /^90$/ }).waitFor();
  t.is(await now.getAttribute("aria-live"), null);
  // The pointer.
  const box = (await plot.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await now.filter({ hasText: /^90 at \d/ }).waitFor();
  // The table.
  await chart.getByText("Table").click();
  await chart.getByRole("cell", { name: "240", exact: true }).waitFor();
  t.is(await chart.locator("tbody tr").count(), 60);
  await inspect(t, page, "overview-charts", allVariants);

  await page.getByRole("button", { name: "Last day" }).click();
  t.regex((await plot.getAttribute("aria-label"))!, /^Transactions a minute, last day: 90 to 105\./);
  t.is(await chart.locator("tbody tr").count(), 144);
  // The hour in which the node did not run is unknown, not 0.
  t.is(await chart.getByRole("cell", { name: "unknown" }).count(), 6);
  for (const [label, text] of [
    ["Blocks a minute", "30"],
    ["Seconds between blocks", "2 s"],
    ["Pending transactions", "4"],
    ["Commitments", "5000"],
    ["Peers online", "3"],
  ] as const) {
    t.is(await page.getByRole("figure").filter({ hasText: label }).locator(".now").textContent(), text, label);
  }
  t.deepEqual(errors, []);
});

/** Counts the pixels of the line and the points in the chart of pending transactions. */
const bluePixels = `(() => {
  const chart = [...document.querySelectorAll("figure")].find(({ textContent }) => textContent.startsWith("Pending"));
  const canvas = chart.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((blue, i) => i % 4 === 2 && data[i + 1] > 128 && blue > data[i - 2] + 60).length;
})()`;

testBrowser.serial("shows that the history starts with the node, if the node has just started", async (t) => {
  const { page, errors } = await open(t, createHistory(Date.now(), 1));
  await page.getByText("The node counts each minute since it started: the first values come soon.").waitFor();
  const rate = page.getByRole("figure").filter({ hasText: "Seconds between blocks" }).locator(".now");
  t.is(await rate.textContent(), "–");
  t.regex((await rate.getAttribute("title"))!, /the first values come soon/);
  // A single value has no line, but a point.
  await until(async () => Number(await page.evaluate(bluePixels)) > 5);
  t.deepEqual(errors, []);
});
