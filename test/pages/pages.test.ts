/** The pages for people, in a real browser where there is one; what they may load, in any case. */
import test from "ava";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { startMember } from "../helpers/start-member.js";
import { launchBrowser, listen, whyNoBrowser } from "../helpers/browser.js";
import { ask } from "../helpers/plain-client.js";
import type { Teardown } from "../helpers/teardown.js";
import type { TestNode } from "../helpers/start-node.js";
import { testUnless } from "../helpers/when.js";
import { versionPattern } from "../helpers/version.js";

test("pages say what they may load, and that is nothing of anybody else's", async (t) => {
  const node = await startMember(t);
  for (const path of ["/status", "/docs"]) {
    const { status, headers, text } = await ask(node.port, path);
    t.is(status, 200);
    t.is(headers["content-type"], "text/html; charset=utf-8");
    const policy = String(headers["content-security-policy"]);
    t.regex(policy, /default-src 'none'; frame-ancestors 'none'/);
    t.notRegex(policy, /https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/);
    t.notRegex(text, /(src|href)="(https?:)?\/\//);
    t.is(headers["x-content-type-options"], "nosniff");
    t.is((await ask(node.port, path, { method: "HEAD" })).status, 200);
    t.is((await ask(node.port, path, { method: "POST" })).status, 405);
  }
});

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

/** A page, with everything that the browser complains of. */
async function open(t: Teardown, node: TestNode, path: string, colorScheme: "dark" | "light", width = 1000) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  t.teardown(() => context.close());
  // A browser that shares two cores with everything else takes its time.
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  const heard = listen(page);
  await page.goto(`${node.rpcUrl}${path}`);
  return { page, ...heard };
}

/** A picture, where PICTURES names a directory for it. */
async function picture(page: Page, name: string): Promise<void> {
  const directory = process.env["PICTURES"];
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
  }
}

testBrowser.serial("the status page shows what /health says, and follows it", async (t) => {
  const node = await startMember(t);
  const { page, complaints, asked } = await open(t, node, "/status", "light");
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  t.is(await page.title(), "ok · Gatehouse");
  t.true((await page.getByRole("row").count()) >= 12);
  await page.getByRole("row", { name: /^chain ready/ }).waitFor();
  await page.getByRole("row", { name: /127\.0\.0\.1:9 .*offline/ }).waitFor();
  await page.getByText(/Boot complete/).waitFor();
  await page.getByText(new RegExp(`Node ${versionPattern} "Barbican" is up`)).waitFor();
  t.regex((await page.locator("#plot-head").getAttribute("aria-label")) ?? "", /Newest block: 0/);
  await picture(page, "status-light");
  node.subsystems.set("l2ps", { status: SubsystemStatus.FAILED, error: { message: "<img src=x onerror=alert(1)>" } });
  await page.getByRole("status").filter({ hasText: "degraded" }).waitFor();
  t.is(await page.locator("#subsystems img").count(), 0);
  t.is(await page.locator("#cause").textContent(), "<img src=x onerror=alert(1)>");
  // What is the matter stands beside the word.
  const message = "The database does not answer (ECONNREFUSED).";
  node.subsystems.set("chain", { status: SubsystemStatus.FAILED, error: { message } });
  await page.getByRole("status").filter({ hasText: "failing" }).waitFor();
  t.is(await page.locator("#cause").textContent(), `${message} <img src=x onerror=alert(1)>`);
  await node.stop();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  t.true(
    asked.every((url) => url.startsWith(node.rpcUrl)),
    asked.join(),
  );
  t.deepEqual(
    complaints.filter((text) => !/ERR_CONNECTION_REFUSED|ERR_EMPTY/.test(text)),
    [],
  );
});

testBrowser.serial("it is readable on a phone, in the dark, and by keyboard", async (t) => {
  const node = await startMember(t);
  const { page, complaints } = await open(t, node, "/status", "dark", 360);
  await page.getByRole("status").filter({ hasText: "ok" }).waitFor();
  const [width, back] = (await page.evaluate(
    "[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]",
  )) as [number, string];
  t.true(width <= 360, `${width}`);
  t.is(back, "rgb(18, 20, 22)");
  await page.keyboard.press("Tab");
  t.is(await page.evaluate("document.activeElement.textContent"), "To the content");
  await page.keyboard.press("Enter");
  t.is(await page.evaluate("document.activeElement.id"), "main");
  await picture(page, "status-dark-phone");
  t.deepEqual(complaints, []);
});

testBrowser.serial("the page of the interface draws it, without any outside address", async (t) => {
  const node = await startMember(t);
  const { page, complaints, asked } = await open(t, node, "/docs", "light");
  const drawn = page.getByText("The programs of an owner that the caller may read").first();
  for (let i = 0; i < 5 && !(await drawn.isVisible()); i++) {
    await drawn.waitFor({ timeout: 15_000 }).catch(() => page.reload());
  }
  await drawn.waitFor();
  await picture(page, "docs");
  t.true(
    asked.every((url) => url.startsWith(node.rpcUrl) || url.startsWith("data:")),
    asked.join(),
  );
  t.deepEqual(complaints, []);
});
