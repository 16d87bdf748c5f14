/** Tests the redirect to the front page, and in a browser the header, the footer and the search box. */
import test, { type ExecutionContext } from "ava";
import express from "express";
import { createGatehouse, createProgram, type Gatehouse, jsonText, keyFromSeed } from "gatehouse-client";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
import { twoVariants, getRaw, inspect, phone } from "../helpers/process/pages.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { askJson } from "../helpers/wire/plain-client.js";

let node: TestNode;
let client: Gatehouse;
let address: string;
const file = fileTeardown();
test.before(async () => {
  node = await startMember(file);
  client = createGatehouse(node.rpcUrl, { signer: keyFromSeed("5b".repeat(32)) });
  file.teardown(() => client.close());
  const { hash, storageAddress } = await client.submit(
    createProgram({ name: "garden <b>notes</b>", data: jsonText("{}"), access: "public" }),
  );
  await client.waitFor(hash);
  address = storageAddress;
});

const chromium = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8";
/** Accept headers of browsers. */
const browsers = [chromium, "text/html", "text/html, application/json", "TEXT/HTML;q=0.9, application/json;q=0.1"];
/** Accept headers of other clients. */
const others = [
  ...["*/*", "", "application/json", "application/json, text/plain, */*", "application/json, text/html"],
  ...[
    "text/html;q=0.5, application/json",
    "text/html;q=0, */*",
    "application/problem+json, text/html",
    "text/*",
    "x-text/html",
  ],
];

for (const [http, get] of Object.entries(getRaw)) {
  test.serial(`redirects browsers at / to the explorer, but no other client, over ${http}`, async (t) => {
    const express = http === "HTTP/1.1" ? [await startMember(t, { edge: "express" })] : [];
    for (const { port } of [node, ...express]) {
      const { headers: plainHeaders, ...plain } = await get(port, "/");
      t.is(plain.status, 200);
      t.is(plainHeaders["cache-control"], "private, no-store");
      t.is(plainHeaders["vary"], undefined);
      const namesOf = (headers: object): string[] => Object.keys(headers).sort();
      for (const accept of others) {
        const { status, headers, body } = await get(port, "/", { accept });
        t.deepEqual({ status, body }, plain, accept);
        t.deepEqual(namesOf(headers), namesOf(plainHeaders), accept);
      }
      for (const accept of browsers) {
        for (const method of ["GET", "HEAD"]) {
          const { status, headers, body } = await get(port, "/", { accept }, method);
          t.is(status, 302, accept);
          t.is(headers.location, "./explore");
          t.is(headers.vary, "Accept");
          t.is(headers["cache-control"], "no-store");
          t.is(body.length, 0);
        }
      }
      t.is((await get(port, "/version", { accept: chromium })).status, 200);
      t.is((await get(port, "/", { accept: chromium }, "PUT")).status, 405);
    }
  });
}

/** Serves the node under a path of an Express application. Returns its port. */
async function mount(t: ExecutionContext, path: string): Promise<number> {
  const app = express();
  app.use(path, (await node.application()).listener);
  const server: Server = app.listen(0, "127.0.0.1");
  t.teardown(() => server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test.serial("redirects relative to the path of another server, with and without a final slash", async (t) => {
  const port = await mount(t, "/some/node");
  for (const path of ["/some/node", "/some/node/", "/some/node?a=/b", "/some/node/?a=/b"]) {
    const { status, headers } = await getRaw["HTTP/1.1"](port, path, { accept: chromium });
    t.is(status, 302);
    t.is(new URL(headers.location!, `http://localhost${path}`).pathname, "/some/node/explore", path);
  }
});

const testBrowser = testUnless(whyNoBrowser);
let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

async function open(t: ExecutionContext, path: string, options: BrowserContextOptions = {}, port = node.port) {
  return await openLoaded(t, browser, `http://127.0.0.1:${port}${path}`, options);
}

const search = (page: Page) => page.getByRole("combobox", { name: /^Search for/ });
const options = (page: Page) => page.getByRole("listbox").getByRole("option");

testBrowser.serial(
  "every page has one header and one footer, with the network, the health and the latest block",
  async (t) => {
    const { genesisHash } = await askJson<{ genesisHash: string }>(node.port, "/chain/head");
    const { name: network } = await askJson<{ name: string }>(node.port, "/genesis");
    const key = await askJson<string>(node.port, "/publickey");
    const port = await mount(t, "/some/node");
    for (const [pagePort, prefix] of [
      [node.port, ""],
      [port, "/some/node"],
    ] as const) {
      const { page, errors } = await open(t, `${prefix}/`, {}, pagePort);
      t.is(new URL(page.url()).pathname, `${prefix}/explore`);
      for (const name of ["Overview", "Tree", "Peers", "Status", "API", "Overview"]) {
        const links = page.getByRole("navigation", { name: "Pages" });
        await links.getByRole("link", { name }).click();
        await links.locator("[aria-current=page]").getByText(name).waitFor();
        t.is(await page.getByRole("banner").count(), 1, name);
        t.is(await page.getByRole("contentinfo").count(), 1, name);
        const header = page.getByRole("banner");
        await header.getByRole("link", { name: "ok", exact: true }).waitFor();
        await header.getByText(/^Block [1-9]\d*, (now|\d+ (s|min) ago)$/).waitFor();
        await header.getByText(network, { exact: true }).waitFor();
        const footer = page.getByRole("contentinfo");
        await footer.getByText(genesisHash).waitFor();
        await footer.getByText(key).waitFor();
        await footer.getByText(/Gatehouse \d/).waitFor();
      }
      // The header names a network without a name by its genesis hash.
      await page.route("**/genesis", (route) => route.fulfill({ json: { timestamp: 0 } }));
      await page.reload();
      await page
        .getByRole("banner")
        .getByText(`${genesisHash.slice(0, 10)}…${genesisHash.slice(-4)}`)
        .waitFor();
      t.deepEqual(errors, []);
    }
  },
);

testBrowser.serial("the search box suggests results while the reader types, and recent searches", async (t) => {
  const { page, errors } = await open(t, "/status");
  await page.keyboard.press("/");
  t.is(await page.evaluate("document.activeElement.id"), "q");
  t.is(await options(page).count(), 0);
  await search(page).fill("garden");
  await options(page).first().waitFor();
  t.regex((await options(page).allTextContents()).join(), /^garden <b>notes<\/b> program of /);
  t.is(await search(page).getAttribute("aria-expanded"), "true");
  await inspect(t, page, "shell-suggestions", twoVariants);
  await page.keyboard.press("ArrowDown");
  t.is(await search(page).getAttribute("aria-activedescendant"), "q-0");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "garden <b>notes</b>" }).waitFor();
  t.true(page.url().endsWith(`/explore#/program/${address}`));

  // Submitting the text shows all results. Both searches are then suggested on every page.
  await search(page).fill("nothing like it");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Search: nothing like it" }).waitFor();
  await page.goto(`${node.rpcUrl}/docs`);
  await page.keyboard.press("/");
  await options(page).first().waitFor();
  t.deepEqual(await options(page).allTextContents(), [
    ...["nothing like it searched before", "garden searched before", "Clear forget these searches"],
  ]);
  await page.keyboard.press("Escape");
  t.is(await options(page).count(), 0);
  // A slash in the search box is text.
  await search(page).fill("");
  await page.keyboard.type("a/b");
  t.is(await search(page).inputValue(), "a/b");
  await search(page).fill("");
  await options(page).getByText("Clear").click();
  t.is(await options(page).count(), 0);
  t.is(await page.evaluate("localStorage.getItem('gatehouse.searches')"), "[]");
  t.deepEqual(errors, []);
});

testBrowser.serial("every page uses the colors of the system, or those that the reader chose", async (t) => {
  const { page } = await open(t, "/explore", { colorScheme: "light" });
  const back = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const [light, dark] = ["rgb(250, 250, 250)", "rgb(18, 20, 22)"];
  t.is(await back(), light);
  const theme = page.getByLabel("Colors");
  await theme.selectOption("dark");
  t.is(await back(), dark);
  await page.goto(`${node.rpcUrl}/status`);
  t.is(await back(), dark);
  t.is(await theme.inputValue(), "dark");
  await theme.selectOption("light");
  await page.emulateMedia({ colorScheme: "dark" });
  t.is(await back(), light);
  await theme.selectOption("");
  t.is(await back(), dark);
});

testBrowser.serial(
  "every page shows the key with which the reader signed in, until the reader signs out",
  async (t) => {
    const { page, errors } = await open(t, "/explore");
    const header = page.getByRole("banner");
    await header.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel(/^Private key/).fill("5b".repeat(32));
    await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
    await header.getByText("Signed in:").waitFor();
    await page.waitForFunction("localStorage.getItem('gatehouse.session') !== null");
    const { publicKey } = keyFromSeed("5b".repeat(32));
    for (const path of ["/docs", "/status", "/latest"]) {
      await page.goto(`${node.rpcUrl}${path}`);
      await header.getByText("Signed in:").waitFor();
      t.is(await header.getByRole("link", { name: "Sign in" }).count(), 0, path);
      await inspect(t, page, `shell-signed-in${path.replace("/", "-")}`, ["phone dark", "desktop light"]);
      await header.getByTitle(publicKey, { exact: true }).click();
      await page.getByRole("heading", { level: 1, name: "You" }).waitFor();
    }
    await page.goto(`${node.rpcUrl}/docs`);
    await page.getByText(`Requests are signed by the key with which you signed in: ${publicKey}`).waitFor();
    await header.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("Requests of this page are anonymous.").waitFor();
    t.is(await page.evaluate("document.activeElement.textContent"), "Sign in");
    await page.goto(`${node.rpcUrl}/latest`);
    await header.getByRole("link", { name: "Sign in" }).waitFor();
    t.deepEqual(errors, []);
  },
);

testBrowser.serial("the header of a wide window has one line above the navigation", async (t) => {
  const { page } = await open(t, "/explore");
  const header = page.getByRole("banner");
  await header.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel(/^Private key/).fill("5b".repeat(32));
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await header.getByText("Signed in:").waitFor();
  for (const name of ["devnet", "a network with a long name"]) {
    await page.evaluate(`document.getElementById("shell-network").textContent = ${JSON.stringify(name)}`);
    for (const width of [1160, 1280, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      const boxes = await page.evaluate<{ id: string; middle: number; right: number }[]>(
        `["shell-network", "shell-status", "shell-block", "find", "who", "theme"].map((id) => {
          const { top, bottom, right } = document.getElementById(id).getBoundingClientRect();
          return { id, middle: (top + bottom) / 2, right };
        })`,
      );
      const [{ middle: line }] = boxes as [(typeof boxes)[0]];
      t.deepEqual(
        boxes.filter(({ middle, right }) => Math.abs(middle - line) > 3 || right > width - 23),
        [],
        `${name}, ${width}`,
      );
    }
  }
  // The key is on the line of the text before it.
  const bottoms = await page.evaluate<number[]>(`["#who > span", "#who code"].map((selector) => {
    const range = document.createRange();
    const text = document.querySelector(selector).firstChild;
    range.setStart(text, 0);
    range.setEnd(text, 1);
    return range.getBoundingClientRect().bottom;
  })`);
  t.true(Math.abs(bottoms[0]! - bottoms[1]!) < 3, bottoms.join());
});

testBrowser.serial("shows the latest blocks and transactions if JavaScript is disabled", async (t) => {
  const { page } = await open(t, "/explore", { javaScriptEnabled: false, viewport: phone });
  await page.waitForURL("**/latest");
  t.false(await page.getByRole("search").isVisible());
  const { hash } = await client.submit(createProgram({ name: "<i>", data: jsonText("{}"), access: "public" }));
  const { blockNumber } = await client.waitFor(hash);
  await page.goto(`${node.rpcUrl}/latest`);
  t.is(await page.locator("tbody").first().getByRole("link").first().innerText(), String(blockNumber));
  const row = page.getByRole("row").filter({ hasText: hash });
  t.regex(await row.innerText(), /create program/);
  const labels = await page.evaluate<string[]>(
    `[...document.querySelector("tbody tr").cells].map((cell) => getComputedStyle(cell, "::before").content)`,
  );
  t.deepEqual(
    labels,
    ["Number", "Time", "Transactions", "Hash"].map((name) => `"${name} "`),
  );
  for (const link of await page.locator("main tbody a").all()) {
    const url = new URL((await link.getAttribute("href"))!, page.url()).href;
    t.is((await page.request.get(url)).status(), 200, url);
  }
  for (const path of ["/status", "/docs"]) {
    await page.goto(`${node.rpcUrl}${path}`);
    await page.locator("header noscript").getByRole("link", { name: "latest blocks" }).click();
    await page.waitForURL("**/latest");
  }
});

testBrowser.serial("shows a private transaction on the page of the latest blocks without its content", async (t) => {
  const { hash } = await client.submit(createProgram({ name: "mine", data: jsonText("{}"), access: "owner" }));
  await client.waitFor(hash);
  const { page } = await open(t, "/latest");
  t.regex(await page.getByRole("row").filter({ hasText: hash }).innerText(), /private/);
  await inspect(t, page, "latest", twoVariants);
});

test.serial("the page of the latest blocks says so if the node has no block", async (t) => {
  const { port } = await startTestNode(t);
  const { status, body } = await getRaw["HTTP/1.1"](port, "/latest");
  t.is(status, 200);
  t.regex(body.toString(), /no block yet/);
});

testBrowser.serial("a hidden page closes its event stream, and opens one when it is visible again", async (t) => {
  const { page, context } = await open(t, "/explore");
  const block = page.getByRole("banner").getByText(/^Block [1-9]/);
  await block.waitFor();
  const streams: string[] = [];
  page.on("request", (request) => (request.url().includes("/events?") ? streams.push(request.url()) : 0));
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"))`);
  await setHidden(true);
  const { hash } = await client.submit(createProgram({ name: "later", data: jsonText("{}"), access: "public" }));
  const { blockNumber } = await client.waitFor(hash);
  t.is(streams.length, 0);
  t.is(await page.getByRole("banner").getByText(`Block ${blockNumber}`).count(), 0);
  await setHidden(false);
  await page.getByRole("banner").getByText(`Block ${blockNumber}`).first().waitFor();
  t.is(streams.length, 1);
  await context.close();
});
