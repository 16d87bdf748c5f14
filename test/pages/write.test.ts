/** Writing from the explorer in a real browser: keys, previews, and the way from an empty network to a verified field. */
import type { ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { startMember } from "../helpers/nodes/start-node.js";
import { testUnless } from "../helpers/nodes/when.js";
import { launchBrowser, openPage, whyNoBrowser } from "../helpers/process/browser.js";
import { allVariants, inspect } from "../helpers/process/pages.js";
import { askJson } from "../helpers/wire/plain-client.js";

const passphrase = "correct horse battery";
const testBrowser = testUnless(whyNoBrowser);
let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

async function open(t: ExecutionContext, route: string) {
  const node = await startMember(t);
  const opened = await openPage(t, browser, `${node.rpcUrl}/explore${route}`);
  return { node, ...opened };
}

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });

async function makeKey(page: Page): Promise<void> {
  const form = page.getByRole("region", { name: "Create a key" });
  await form.getByLabel(/^Passphrase/).fill(passphrase);
  await form.getByLabel(/again/).fill(passphrase);
  await form.getByRole("button", { name: "Create a key" }).click();
  await page.getByText("Signed in:").waitFor();
}

async function submitChange(page: Page, summary: string | RegExp): Promise<void> {
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("heading", { name: "Preview" }).waitFor();
  await page.getByText(summary).first().waitFor();
  await page.getByRole("button", { name: "Sign and submit" }).click();
  await page.getByRole("listitem").filter({ hasText: "In a block" }).and(page.locator("[aria-current=step]")).waitFor();
}

testBrowser.serial(
  "from an empty network to a verified field and its history, without leaving the browser",
  async (t) => {
    t.timeout(300_000, "axe looks at each view in each way in which it is seen");
    const { page, errors, go, node } = await open(t, "");
    await go();
    await page.getByRole("heading", { name: "Write the first program" }).waitFor();
    await page.getByRole("link", { name: "in this browser" }).click();
    await page.getByText("Writing needs a key").waitFor();
    await page.getByRole("link", { name: "create, import or unlock one" }).click();
    await inspect(t, page, "write-keys", allVariants);
    const download = page.waitForEvent("download");
    await makeKey(page);
    t.regex((await download).suggestedFilename(), /^0x[0-9a-f]{16}\.key$/);

    await page.goto(`${node.rpcUrl}/explore#/new`);
    await page.locator("main").getByLabel("Name").fill("notes");
    await page.locator("main").getByLabel("Document, as JSON").fill('{"title": "Hello", "list": [1]}');
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("button", { name: "Sign and submit" }).waitFor();
    await inspect(t, page, "write-preview", allVariants);
    await submitChange(page, 'Creates the program "notes"');
    await page
      .getByRole("link", { name: /^stor-/ })
      .first()
      .click();
    await heading(page, "notes").waitFor();

    await page.getByRole("link", { name: "Change this program" }).click();
    await heading(page, "Change notes").waitFor();
    await page.locator("main").getByLabel("Field", { exact: true }).fill("title");
    await page.locator("main").getByLabel("Value, as JSON").fill('"Changed"');
    await submitChange(page, 'Sets the field "title" of');
    const address = /stor-[0-9a-f]{40}/.exec(await page.locator("main").innerHTML())![0];
    const change = async (kind: string, fill: () => Promise<unknown>, summary: string) => {
      await page.goto(`${node.rpcUrl}/explore#/change/${address}`);
      await heading(page, "Change notes").waitFor();
      await page.locator("main").getByLabel("Change", { exact: true }).selectOption(kind);
      await fill();
      await submitChange(page, summary);
    };
    await change(
      "Append an item",
      async () => {
        await page.locator("main").getByLabel("Field that holds a list").fill("list");
        await page.locator("main").getByLabel("Item, as JSON").fill("2");
      },
      'Appends an item to the field "list" of',
    );
    await change(
      "Delete a field",
      () => page.locator("main").getByLabel("Field", { exact: true }).fill("list"),
      'Deletes the field "list" of',
    );
    await change(
      "Change the access rule",
      () => page.locator("main").getByLabel("Read access").selectOption("owner"),
      "Changes the access rule of",
    );
    t.is(
      (await askJson<{ error?: string; errorCode?: string }>(node.port, `/storage-program/${address}`)).errorCode,
      "NOT_FOUND",
    );

    await page.goto(`${node.rpcUrl}/explore#/program/${address}`);
    await page.getByRole("button", { name: "Verify title" }).click();
    await page.getByText("✓ Verified.").waitFor();
    await page
      .getByRole("table", { name: /history/i })
      .getByText("Set field")
      .waitFor();
    t.deepEqual(errors, []);
  },
);

testBrowser.serial("a stored key is encrypted, and unlocked with its passphrase only", async (t) => {
  const { page, errors, go } = await open(t, "#/keys");
  await go();
  const importing = page.getByRole("region", { name: "Import a key" });
  const seed = "5d".repeat(32);
  await importing.getByLabel(/^Private key/).fill(seed);
  await importing.getByLabel(/^Passphrase/).fill("short");
  await importing.getByLabel(/again/).fill("short");
  await importing.getByRole("button", { name: "Import" }).click();
  await importing.getByText("The passphrase must have at least 10 characters.").waitFor();
  await importing.getByLabel(/^Passphrase/).fill(passphrase);
  await importing.getByRole("button", { name: "Import" }).click();
  await importing.getByText("The two passphrases differ.").waitFor();
  await importing.getByLabel(/again/).fill(passphrase);
  await importing.getByRole("button", { name: "Import" }).click();
  await page.getByText("Signed in:").waitFor();
  const stored = String(await page.evaluate("JSON.stringify(localStorage)"));
  t.false(stored.includes(seed));
  t.regex(stored, /PBKDF2-SHA-256.*600000.*AES-256-GCM/);

  // After a reload the reader still reads as the key, and unlocks it again to write.
  await page.waitForFunction("localStorage.getItem('gatehouse.session') !== null");
  await page.reload();
  await page.getByText("Signed in:").waitFor();
  const item = page.getByRole("region", { name: "Stored keys" }).getByRole("listitem");
  await item.getByLabel("Passphrase").fill("wrong horse battery");
  await item.getByRole("button", { name: "Unlock" }).click();
  await item.getByText("The passphrase is wrong.").waitFor();
  await item.getByLabel("Passphrase").fill(passphrase);
  await item.getByRole("button", { name: "Unlock" }).click();
  await item.getByText("is unlocked.").waitFor();
  await item.getByRole("button", { name: /^Delete/ }).click();
  await item.getByRole("button", { name: "Delete permanently" }).click();
  t.is(await page.evaluate("localStorage.getItem('gatehouse.keys')"), "[]");
  t.deepEqual(errors, []);
});

testBrowser.serial("invalid values are rejected before a preview, with the expected form", async (t) => {
  const { page, errors, go, node } = await open(t, "#/keys");
  await go();
  await makeKey(page);
  await page.goto(`${node.rpcUrl}/explore#/new`);
  const preview = page.getByRole("button", { name: "Preview" });
  await preview.click();
  await page.getByText("Enter a name.").waitFor();
  await page.locator("main").getByLabel("Name").fill(`<img src=x onerror="document.title='markup'">`);
  await page.locator("main").getByLabel("Document, as JSON").fill("Hello");
  await preview.click();
  await page.getByText("The document must be JSON").waitFor();
  await page.locator("main").getByLabel("Document, as JSON").fill("{}");
  await page.locator("main").getByLabel("Read access").selectOption("restricted");
  await page
    .locator("main")
    .getByLabel(/^Keys that may read it/)
    .fill("0x12");
  await preview.click();
  await page.getByText('A key is 0x and 64 hex digits, and "0x12" is not.').waitFor();
  await page
    .locator("main")
    .getByLabel(/^Keys that may read it/)
    .fill(`0x${"ab".repeat(32)}`);
  await preview.click();
  await page.getByRole("button", { name: "Sign and submit" }).waitFor();
  t.is(await page.locator("img").count(), 0);
  // A change of the form removes the preview.
  await page.locator("main").getByLabel("Name").fill("other");
  t.is(await page.getByRole("button", { name: "Sign and submit" }).count(), 0);
  t.deepEqual(errors, []);
});

testBrowser.serial("without a secure context, keys and writing are disabled with a reason", async (t) => {
  const { page, go, node } = await open(t, "#/keys");
  await page.addInitScript("Object.defineProperty(window, 'isSecureContext', { get: () => false })");
  await go();
  await page.getByText("only over HTTPS or on your own machine").waitFor();
  await page.goto(`${node.rpcUrl}/explore#/new`);
  await heading(page, "New program").waitFor();
  await page.getByText("only over HTTPS or on your own machine").waitFor();
  t.is(await page.getByRole("button", { name: "Preview" }).count(), 0);
});
