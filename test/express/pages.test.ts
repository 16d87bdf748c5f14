/** HTML pages below a path of another application, in a real browser if one is installed. */
import express from "express";
import type { Browser } from "playwright-core";
import { launchBrowser, recordPage, whyNoBrowser } from "../helpers/process/browser.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { startMember } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

async function open(t: Teardown, path: string) {
  const node = await startMember(t);
  const { url } = await listenApp(t, express().use("/far/node", (await node.application()).listener));
  const page = await browser.newPage();
  t.teardown(() => page.close());
  // A browser is slow on two shared cores.
  page.setDefaultTimeout(90_000);
  const recorded = recordPage(page);
  await page.goto(`${url}/far/node${path}`);
  return { page, base: `${url}/far/node`, ...recorded };
}

testBrowser.serial("the status page shows the mounted node", async (t) => {
  const { page, base, errors, requests } = await open(t, "/status");
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  await page.getByText(/Boot complete/).waitFor();
  t.true(requests.includes(`${base}/health`));
  t.true(
    requests.every((url) => url.startsWith(base)),
    requests.join(),
  );
  t.deepEqual(
    await page.evaluate("[...document.querySelectorAll('footer a')].map(({ href }) => href)"),
    ["/docs", "/openapi.json", "/genesis"].map((path) => `${base}${path}`),
  );
  t.deepEqual(errors, []);
});

testBrowser.serial("the API reference describes and calls the mounted node", async (t) => {
  const { page, base, errors, requests } = await open(t, "/docs");
  const versionResponse = page.waitForResponse(`${base}/version`);
  await page.getByRole("button", { name: "Send: GET /version" }).click();
  t.is((await versionResponse).status(), 200);
  t.true(
    requests.every((url) => url.startsWith(base) || url.startsWith("data:")),
    requests.join(),
  );
  t.deepEqual(errors, []);
});

testBrowser.serial("the explorer reads from the mounted node", async (t) => {
  const { page, base, requests } = await open(t, "/explore#/peers");
  await page.getByRole("heading", { level: 1, name: "Peers" }).waitFor();
  await page.getByRole("link", { name: "Tree" }).click();
  await page.getByRole("heading", { level: 1, name: "Commitment tree" }).waitFor();
  t.true(requests.includes(`${base}/zk/merkle-root`));
  t.true(
    requests.every((url) => url.startsWith(base) || url.startsWith("data:")),
    requests.join(),
  );
});
