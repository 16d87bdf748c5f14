/** HTML pages below a path of another application, in a real browser if one is installed. */
import express from "express";
import type { Browser } from "playwright-core";
import { launchBrowser, listen, whyNoBrowser } from "../helpers/process/browser.js";
import { listenApp } from "../helpers/nodes/express-app.js";
import { startMember } from "../helpers/nodes/start-member.js";
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
  const heard = listen(page);
  await page.goto(`${url}/far/node${path}`);
  return { page, base: `${url}/far/node`, ...heard };
}

testBrowser.serial("the status page follows the node that it is of", async (t) => {
  const { page, base, complaints, asked } = await open(t, "/status");
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  await page.getByText(/Boot complete/).waitFor();
  t.true(asked.includes(`${base}/health`));
  t.true(
    asked.every((url) => url.startsWith(base)),
    asked.join(),
  );
  t.deepEqual(
    await page.evaluate("[...document.querySelectorAll('footer a')].map(({ href }) => href)"),
    ["/health", "/peerlist", "/docs"].map((path) => `${base}${path}`),
  );
  t.deepEqual(complaints, []);
});

testBrowser.serial("the page of the interface draws it, and calls the node that it is of", async (t) => {
  const { page, base, complaints, asked } = await open(t, "/docs");
  await page.getByText("Returns the node version", { exact: true }).click();
  const versionResponse = page.waitForResponse(`${base}/version`);
  await page.getByRole("button", { name: "Try: Returns the node version" }).click();
  t.is((await versionResponse).status(), 200);
  t.true(
    asked.every((url) => url.startsWith(base) || url.startsWith("data:")),
    asked.join(),
  );
  t.deepEqual(complaints, []);
});

testBrowser.serial("the explorer asks the node that it is of", async (t) => {
  const { page, base, asked } = await open(t, "/explore#/peers");
  await page.getByRole("heading", { level: 1, name: "Peers" }).waitFor();
  await page.getByRole("link", { name: "Tree" }).click();
  await page.getByRole("heading", { level: 1, name: "Commitment tree" }).waitFor();
  t.true(asked.includes(`${base}/zk/merkle-root`));
  t.true(
    asked.every((url) => url.startsWith(base) || url.startsWith("data:")),
    asked.join(),
  );
});
