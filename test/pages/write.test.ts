/** Writing from the explorer in a real browser: keys, previews, and the way from an empty network to a verified field. */
import type { ExecutionContext } from "ava";
import { createGatehouse, createProgram, jsonText, keyFromSeed, setField } from "gatehouse-client";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { runCli } from "../helpers/nodes/run-cli.js";
import { startPendingNode } from "../helpers/nodes/pending-node.js";
import { startMember } from "../helpers/nodes/start-node.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
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
  // A narrow window has it in the menu.
  await page.getByText("Signed in:").waitFor({ state: "attached" });
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
    const backup = await readFile(await (await download).path(), "utf8");
    t.true(backup.startsWith("-----BEGIN ENCRYPTED PRIVATE KEY-----"));

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
    await page.getByText("private", { exact: true }).first().waitFor();
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
  const { page, errors, go, node } = await open(t, "#/keys");
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
  await page.evaluate('location.hash = "/new"');
  await page.getByText("You are signed in for reading only. To write, unlock 0x").waitFor();
  t.is(await page.getByText("Writing needs a key").count(), 0);
  await inspect(t, page, "write-locked", ["phone dark", "desktop light"]);
  await page.locator("main").getByLabel("Passphrase").fill(passphrase);
  await page.locator("main").getByRole("button", { name: "Unlock" }).click();
  await page.getByRole("button", { name: "Preview" }).waitFor();
  // The browser may have a session of a key that it does not store.
  await page.evaluate(`sessionStorage.setItem("keys", localStorage.getItem("gatehouse.keys"));
    localStorage.removeItem("gatehouse.keys")`);
  await page.reload();
  await page.getByText("You are signed in for reading only. To write, sign in again with 0x").waitFor();
  await page.getByRole("button", { name: "Sign in with a key" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.evaluate('localStorage.setItem("gatehouse.keys", sessionStorage.getItem("keys"))');
  await page.goto(`${node.rpcUrl}/explore#/keys`);
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

testBrowser.serial("a document is replaced, and a program deleted after its name is typed", async (t) => {
  const { page, errors, go, node } = await open(t, "#/keys");
  const seed = "5f".repeat(32);
  const client = createGatehouse(node.rpcUrl, { signer: keyFromSeed(seed) });
  t.teardown(() => client.close());
  const data = jsonText('{"big": 12345678901234567890}');
  const { hash, storageAddress } = await client.submit(createProgram({ name: "notes", data, access: "public" }));
  await client.waitFor(hash);
  await go();
  const importing = page.getByRole("region", { name: "Import a key" });
  await importing.getByLabel(/^Private key/).fill(seed);
  await importing.getByLabel(/^Passphrase/).fill(passphrase);
  await importing.getByLabel(/again/).fill(passphrase);
  await importing.getByRole("button", { name: "Import" }).click();
  await page.getByText("Signed in:").waitFor();
  const open1 = async (kind: string): Promise<void> => {
    await page.evaluate(`location.hash = "/change/${storageAddress}"`);
    await heading(page, "Change notes").waitFor();
    await page.locator("main").getByLabel("Change", { exact: true }).selectOption(kind);
  };
  await open1("Replace the document");
  const document = page.locator("main").getByLabel("New document, as JSON");
  // All digits are there to edit.
  t.is(await document.inputValue(), '{"big": 12345678901234567890}');
  await document.fill('{"title": "New"}');
  await submitChange(page, "Replaces the document of");
  t.deepEqual((await askJson<{ data: object }>(node.port, `/storage-program/${storageAddress}`)).data, {
    title: "New",
  });
  await open1("Delete the program");
  await page.getByLabel("Name of the program, to confirm").fill("note");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("The entered name is not that of the program.").waitFor();
  await page.getByLabel("Name of the program, to confirm").fill("notes");
  await submitChange(page, "Deletes the program");
  const gone = await askJson<{ errorCode?: string }>(node.port, `/storage-program/${storageAddress}`);
  t.is(gone.errorCode, "NOT_FOUND");
  t.deepEqual(errors, []);
});

testBrowser.serial(
  "OpenSSL's form of an encrypted backup is read by Node.js, the command line and the page",
  async (t) => {
    const { page, errors, go, node } = await open(t, "#/keys");
    await go();
    const download = page.waitForEvent("download");
    await makeKey(page);
    const pem = await readFile(await (await download).path(), "utf8");
    const publicKey = await page.evaluate<string>("JSON.parse(localStorage.getItem('gatehouse.keys'))[0].publicKey");
    const { x } = createPublicKey(createPrivateKey({ key: pem, passphrase })).export({ format: "jwk" });
    t.is(`0x${Buffer.from(x!, "base64url").toString("hex")}`, publicKey);
    t.throws(() => createPrivateKey({ key: pem, passphrase: "wrong" }));

    const path = join(await temporaryDirectory(t), "backup.key");
    await writeFile(path, pem);
    await chmod(path, 0o600);
    const headers = ["identity", "headers", "--key", path, "--node", node.rpcUrl];
    const read = await runCli(headers, { env: { GATEHOUSE_KEY_PASSPHRASE: passphrase } });
    t.true(read.stdout.includes(publicKey), read.stderr);
    t.regex(
      (await runCli(headers, { env: { GATEHOUSE_KEY_PASSPHRASE: "wrong" } })).stderr,
      /The passphrase of the key .* is wrong/,
    );
    t.regex((await runCli(headers)).stderr, /is encrypted; set GATEHOUSE_KEY_PASSPHRASE/);

    await page.getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("button", { name: "Delete permanently" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    const importing = page.getByRole("region", { name: "Import a key" });
    for (const [entered, outcome] of [
      ["wrong horse battery", importing.getByText("The passphrase is wrong.")],
      [passphrase, page.getByText("Signed in:")],
    ] as const) {
      await importing.getByLabel(/^Private key/).fill(pem);
      await importing.getByLabel(/^Passphrase/).fill(entered);
      await importing.getByLabel(/again/).fill(entered);
      await importing.getByRole("button", { name: "Import" }).click();
      await outcome.waitFor();
    }
    // The dialog, which asks for no passphrase, says where such a key is read.
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("banner").getByRole("button", { name: "Sign in", exact: true }).click();
    await page
      .getByRole("dialog")
      .getByLabel(/^Private key/)
      .fill(pem);
    await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This key is encrypted. Import it under Keys, with its passphrase.").waitFor();
    t.deepEqual(errors, []);
  },
);

testBrowser.serial("a new key has a backup that is not encrypted only by choice", async (t) => {
  const { page, go } = await open(t, "#/keys");
  await go();
  await page.getByLabel(/^Backup/).selectOption("plain");
  const download = page.waitForEvent("download");
  await makeKey(page);
  t.regex(await readFile(await (await download).path(), "utf8"), /^-----BEGIN PRIVATE KEY-----\n[^-]+-----END/);
});

testBrowser.serial("own transactions that wait for a block are shown, and then leave the waiting", async (t) => {
  const node = await startPendingNode(t);
  const { page, go } = await openPage(t, browser, `${node.rpcUrl}/explore#/keys`);
  await go();
  await makeKey(page);
  const create = async (access: string): Promise<void> => {
    await page.evaluate('location.hash = "/new"');
    await page.locator("main").getByLabel("Name").fill(access);
    await page.locator("main").getByLabel("Document, as JSON").fill("{}");
    await page.locator("main").getByLabel("Read access").selectOption(access);
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("button", { name: "Sign and submit" }).click();
    await heading(page, /^Transaction/).waitFor();
    await page.getByRole("listitem").filter({ hasText: "Waiting for a block" }).and(page.locator(".done")).waitFor();
  };
  for (const access of ["public", "owner"]) {
    await create(access);
    await page.getByText(`Creates the program "${access}"`).waitFor();
    t.is(await page.getByText("Only keys that").count(), 0);
    t.is(await page.getByRole("button", { name: "Sign in with a key" }).count(), 0);
  }
  const owned = page.url();
  const program = (await page
    .getByRole("link", { name: /^stor-/ })
    .first()
    .getAttribute("href"))!;
  // A program that is not in a block yet is not called private.
  await page.evaluate(`location.hash = ${JSON.stringify(program)}`);
  await page.getByText("the transaction that creates it waits for a block").waitFor();
  t.is(await page.getByRole("button", { name: "Sign in with a key" }).count(), 0);
  // Other readers see neither the operation nor a claim about its program.
  await page.evaluate("localStorage.removeItem('gatehouse.session')");
  await page.goto("about:blank");
  await page.goto(owned);
  await page.getByText("to the readers of its program, which may not exist yet").waitFor();
  await page.getByRole("button", { name: "Sign in with a key" }).waitFor();

  // In a block, the transaction waits no more.
  await page.route("**/chain/transactions/0x*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ json: { ...((await response.json()) as object), status: "included", blockNumber: 1 } });
  });
  await page.getByRole("listitem").filter({ hasText: "In a block" }).and(page.locator("[aria-current=step]")).waitFor();
  t.is(await page.getByText("Waiting for a block").count(), 0);
});

testBrowser.serial("a program appears once its block arrives, in a page that waited for it", async (t) => {
  const { page, go, node } = await open(t, "");
  const client = createGatehouse(node.rpcUrl, { signer: keyFromSeed("5f".repeat(32)) });
  t.teardown(() => client.close());
  await go();
  let isHidden = true;
  await page.route("**/storage-program/stor-*", (route) =>
    isHidden
      ? route.fulfill({ status: 404, json: { success: false, error: "There is none.", errorCode: "NOT_FOUND" } })
      : route.continue(),
  );
  const data = jsonText("{}");
  const { hash, storageAddress } = await client.submit(createProgram({ name: "late", data, access: "public" }));
  await client.waitFor(hash);
  await page.evaluate(`location.hash = "/program/${storageAddress}"`);
  await heading(page, "No program to show").waitFor();
  isHidden = false;
  await client.waitFor((await client.submit(setField(storageAddress, "a", 1))).hash);
  await heading(page, "late").waitFor();
  t.pass();
});

testBrowser.serial("a block appears once it exists, in a page that waited for it", async (t) => {
  const { page, go, node } = await open(t, "#/block/1");
  await go();
  await heading(page, "Block 1").waitFor();
  await page.getByText("There is no block 1 yet: this page shows the block once it exists.").waitFor();
  const client = createGatehouse(node.rpcUrl, { signer: keyFromSeed("5f".repeat(32)) });
  t.teardown(() => client.close());
  const { hash } = await client.submit(createProgram({ name: "first", data: jsonText("{}"), access: "public" }));
  await client.waitFor(hash);
  await page.getByText("This is the latest block.").waitFor();
  t.is(await page.getByText("There is no block 1 yet").count(), 0);
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
  await page.getByText('The document is not JSON at line 1, column 1: unexpected "H".').waitFor();
  for (const [text, problem] of [
    ['{"a":1,}', 'line 1, column 8: unexpected "}"; remove the comma before it.'],
    ['{\n  "a": 1\n  "b": 2\n}', 'line 3, column 3: unexpected "\\"".'],
    ["[1, 2", "line 1, column 6: the text ends."],
  ] as const) {
    await page.locator("main").getByLabel("Document, as JSON").fill(text);
    await preview.click();
    await page.getByText(`The document is not JSON at ${problem}`, { exact: true }).waitFor();
  }
  await page.locator("main").getByLabel("Document, as JSON").fill('{"a": 1, "a": 2}');
  await preview.click();
  await page.getByText('The document has two members with the name "a" in one object, at line 1, column 10.').waitFor();
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
