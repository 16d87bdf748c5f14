/** Tests the explorer in unusual states: a slow or unreachable node, navigation back, and transactions that are pasted. */
import type { ExecutionContext } from "ava";
import { createGatehouse, createProgram, type Gatehouse, jsonText, keyFromSeed } from "gatehouse-client";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { testKey } from "../helpers/chain/keys.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";
import { heading, launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
import { inspect, phone, twoVariants } from "../helpers/process/pages.js";
import { askJson } from "../helpers/wire/plain-client.js";

const owner = testKey(0x5c);
const file = fileTeardown();
let node: TestNode;
let client: Gatehouse;
let address: string;

const testBrowser = testUnless(whyNoBrowser);
let browser: Browser;
testBrowser.before(async (t) => {
  t.timeout(300_000, "a browser and a node start slowly on a busy machine");
  browser = await launchBrowser();
  node = await startMember(file);
  client = createGatehouse(node.rpcUrl, { signer: keyFromSeed("5c".repeat(32)) });
  file.teardown(() => client.close());
  for (let i = 0; i < 3; i++) {
    const program = createProgram({ name: `program ${i}`, data: jsonText("{}"), access: "public" });
    const { hash, storageAddress } = await client.submit(program);
    await client.waitFor(hash);
    address = storageAddress;
  }
});
testBrowser.after(() => browser.close());

async function open(t: ExecutionContext, route: string, options: BrowserContextOptions = {}) {
  t.timeout(300_000, "a browser is slow on a machine with two cores");
  return await openLoaded(t, browser, `${node.rpcUrl}/explore#${route}`, options);
}

const go = (page: Page, route: string) => page.evaluate(`location.hash = ${JSON.stringify(route)}`);

testBrowser.serial("a view that the node did not send is loaded once the node responds again", async (t) => {
  const { page } = await open(t, "/");
  await heading(page, "Overview").waitFor();
  await page.route("**/chain/blocks/1", (route) => route.abort());
  await go(page, "/block/1");
  await heading(page, "Not available").waitFor();
  await page.getByText("The node does not respond.").waitFor();
  await page.getByText("This page tries again.").waitFor();
  await page.unrouteAll();
  await heading(page, "Block 1").waitFor();
  // Another view is not replaced by the one that failed before.
  await page.route("**/chain/blocks/2", (route) => route.abort());
  await go(page, "/block/2");
  await heading(page, "Not available").waitFor();
  await page.unrouteAll();
  await go(page, `/block/0x${"9".repeat(64)}`);
  await heading(page, "Not found").waitFor();
  await go(page, "/block/one");
  await heading(page, "Nothing here").waitFor();
  t.pass();
});

testBrowser.serial("a slow view shows that it is loading", async (t) => {
  const { page } = await open(t, "/");
  await heading(page, "Overview").waitFor();
  let release!: () => void;
  const isReleased = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/chain/blocks/1", async (route) => {
    await isReleased;
    await route.continue();
  });
  await go(page, "/block/1");
  const shown = `(() => {
    const { content, visibility } = getComputedStyle(document.getElementById("main"), "::before");
    return content === '"Loading…"' && visibility === "visible";
  })()`;
  await until(() => page.evaluate(shown));
  release();
  await heading(page, "Block 1").waitFor();
  t.is(await page.evaluate(shown), false);
});

testBrowser.serial("the way back leads to the place on the page that the reader left", async (t) => {
  const { page } = await open(t, `/program/${address}`, { viewport: { width: 800, height: 400 } });
  const block = page.getByRole("table", { name: "History" }).getByRole("link").first();
  await block.scrollIntoViewIfNeeded();
  await until(() => page.evaluate("history.state > 0"));
  const left = await page.evaluate("scrollY");
  await block.click();
  await heading(page, "Block 3").waitFor();
  t.is(await page.evaluate("scrollY"), 0);
  await page.goBack();
  await heading(page, "program 2").waitFor();
  t.is(await page.evaluate("scrollY"), left);
  await page.reload();
  await heading(page, "program 2").waitFor();
  t.is(await page.evaluate("scrollY"), left);
});

testBrowser.serial("an owner has one form, and a reader without a key sees which data is shown", async (t) => {
  const { page } = await open(t, `/owner/${owner.publicKey.slice(2).toUpperCase()}`);
  await heading(page, /^Owner 0x/).waitFor();
  await page.getByText(owner.publicKey, { exact: true }).waitFor();
  await page.getByText("Public ones. Sign in to see more.").waitFor();
  t.pass();
});

testBrowser.serial("rows have the time besides the age, also on a phone", async (t) => {
  const { header } = await askJson<{ header: { timestamp: number } }>(node.port, "/chain/blocks/3");
  const { page } = await open(t, "/transactions", { viewport: phone, locale: "en-GB", timezoneId: "UTC" });
  const time = new Date(header.timestamp).toLocaleString("en-GB", {
    ...{ dateStyle: "medium", timeStyle: "long" },
    timeZone: "UTC",
  } as Intl.DateTimeFormatOptions);
  await page.getByRole("table", { name: "Transactions" }).getByText(time).first().waitFor();
  t.pass();
});

testBrowser.serial("decodes a pasted transaction, and checks it without sending it", async (t) => {
  const { page, errors, requests } = await open(t, "/new");
  await page.getByRole("link", { name: "Decode a transaction" }).click();
  await heading(page, "Decode a transaction").waitFor();
  const { block } = await askJson<{ block: { transactions: { body: string; signature: string }[] } }>(
    node.port,
    "/chain/blocks/3",
  );
  const transaction = block.transactions[0]!;
  const input = page.getByLabel(/^Transaction as the JSON/);
  const decode = async (text: string): Promise<void> => {
    await input.fill(text);
    await page.getByRole("button", { name: "Decode" }).click();
  };
  const marks = page.getByRole("list", { name: "Steps" }).getByRole("img");
  const results = async (): Promise<(string | null)[]> =>
    await Promise.all((await marks.all()).map((mark) => mark.getAttribute("aria-label")));
  for (const [text, signature] of [
    [JSON.stringify({ transaction }), "passed"],
    [JSON.stringify({ ...transaction, signature: `AAAA${transaction.signature.slice(4)}` }), "failed"],
    [transaction.body, "not checked"],
    [transaction.body.replace(/.{76}/g, "$&\n"), "not checked"],
  ] as const) {
    await decode(text);
    await page.getByText('Creates the program "program 2"').waitFor();
    await marks.last().waitFor();
    // A block has the nonce already.
    t.deepEqual(await results(), [signature, "passed", "passed", "failed"]);
  }
  await inspect(t, page, "explore-decode", twoVariants);
  const padded = transaction.body.replace(/^..../, "$&=");
  const twice = JSON.stringify(transaction).replace("{", `{"body":"${transaction.body}",`);
  for (const text of ["no transaction", "{}", "AAAA", "CgEw", transaction.signature, padded, twice]) {
    await decode(text);
    await page.getByRole("alert").filter({ hasText: "This is neither" }).waitFor();
    t.is(await marks.count(), 0);
  }
  t.deepEqual(errors, []);
  t.is(requests.filter((url) => /transactions$/.test(url)).length, 0);
});
