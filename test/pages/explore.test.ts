/** Tests the size and the content security policy of the explorer, and its views in a browser. */
import test, { type ExecutionContext } from "ava";
import {
  createGatehouse,
  createProgram,
  type Gatehouse,
  addCommitment,
  jsonText,
  keyFromSeed,
  setField,
} from "gatehouse-client";
import { readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { heading, launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { twoVariants, allVariants, inspect, phone } from "../helpers/process/pages.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { join } from "node:path";

const seed = "5a".repeat(32);
const owner = testKey(0x5a);
const markup = `<img src=x onerror="document.title='markup'">`;
const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

let node: TestNode;
let client: Gatehouse;
/** Addresses of the programs. */
let addresses: { readonly notes: string; readonly diary: string; readonly odd: string };
/** Hash of a transaction that changed `notes`. */
let changeHash: string;
const file = fileTeardown();

test.before(async () => {
  node = await startMember(file);
  client = createGatehouse(node.rpcUrl, { signer: keyFromSeed(seed) });
  file.teardown(() => client.close());
  const create = async (name: string, data: string, access: "public" | "owner") => {
    const program = createProgram({ name, data: jsonText(data), access, metadata: { kind: "test" } });
    const { hash, storageAddress } = await client.submit(program);
    await client.waitFor(hash);
    return storageAddress;
  };
  addresses = {
    notes: await create(
      "notes",
      '{"title": "Hello", "n": 1.50, "list": [{"a": null}, true], "big": 12345678901234567890}',
      "public",
    ),
    diary: await create("diary", '{"today": "Only I can read this."}', "owner"),
    odd: await create(markup, JSON.stringify({ [markup]: markup, list: [markup] }), "public"),
  };
  changeHash = (await client.submit(setField(addresses.notes, "title", "Changed"))).hash;
  const added = await client.submit(addCommitment(element(102)));
  await client.waitFor(added.hash);
});

test.serial("the page is below 150,000 bytes with gzip, and may only run its two inline scripts", async (t) => {
  const script = await readFile(new URL("../../assets/explore.js", import.meta.url));
  const { status, headers, text } = await ask(node.port, "/explore");
  t.is(status, 200);
  const gzipped = gzipSync(text).length;
  t.log(`${script.length} bytes of script, ${gzipped} of the page as gzip`);
  t.true(gzipped < 150_000, String(gzipped));
  t.true(text.includes(script.toString()));
  t.is(text.match(/<script/g)?.length, 2);
  const policy = String(headers["content-security-policy"]);
  t.regex(policy, /default-src 'none'; frame-ancestors 'none'; base-uri 'none'/);
  t.regex(policy, /connect-src 'self'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'/);
  t.notRegex(policy, /https?:|\*|unsafe|script-src[^;]*'self'/);
  t.notRegex(text, /(src|href)="(https?:)?\/\//);
});

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

async function open(t: ExecutionContext, route: string, options: BrowserContextOptions = {}) {
  return await openLoaded(t, browser, `${node.rpcUrl}/explore#${route}`, options);
}

async function signIn(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Sign in", exact: true }).first().click();
  await page.getByLabel(/^Private key/).fill(seed);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in:").waitFor();
}

testBrowser.serial(
  "finds a transaction, reads a private program as its owner and verifies a field in few clicks",
  async (t) => {
    const { page, errors, requests } = await open(t, "/");
    await heading(page, "Overview").waitFor();
    let clicks = 0;
    const click = async (target: Locator): Promise<void> => {
      clicks++;
      await target.click();
    };

    // Finds a transaction by its hash.
    await page.getByRole("combobox", { name: /^Search for/ }).fill(changeHash);
    await click(page.getByRole("button", { name: "Search" }));
    await heading(page, /^Transaction /).waitFor();
    await page.getByText('Sets the field "title" of').waitFor();
    t.is(clicks, 1);

    // Reads a private program as its owner.
    clicks = 0;
    await click(page.getByRole("button", { name: "Sign in", exact: true }));
    await page.getByLabel(/^Private key/).fill(seed);
    await click(page.getByRole("dialog").getByRole("button", { name: "Sign in" }));
    await click(page.locator("#who").getByRole("link"));
    await heading(page, "You").waitFor();
    await click(page.getByRole("link", { name: "diary", exact: true }));
    await heading(page, "diary").waitFor();
    await page.getByText("Only I can read this.").first().waitFor();
    t.is(clicks, 4);

    // Verifies a field of the program.
    clicks = 0;
    await click(page.getByRole("button", { name: "Verify today" }));
    await page.getByRole("status").filter({ hasText: "✓ Verified. The field is" }).waitFor();
    t.is(clicks, 1);

    t.true(
      requests.every((url) => url.startsWith(node.rpcUrl) || url.startsWith("data:")),
      requests.join(),
    );
    t.deepEqual(errors, []);
  },
);

testBrowser.serial(
  "never sends or stores the private key, and stores signatures until the reader signs out",
  async (t) => {
    const { page, context } = await open(t, `/program/${addresses.diary}`);
    await heading(page, "No program to show").waitFor();
    const sent: string[] = [];
    page.on("request", (request) => {
      sent.push(JSON.stringify([request.url(), request.headers(), request.postData()]));
    });
    await page.getByRole("button", { name: "Sign in with a key" }).click();
    await page.getByLabel(/^Private key/).fill("5a5a");
    await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "64 hex digits" }).waitFor();
    // Signs in with a key file.
    const path = join(await temporaryDirectory(t), "identity.key");
    await writeKey(path, owner);
    await page.getByLabel(/^Private key/).fill("");
    await page.getByLabel("Or its file").setInputFiles(path);
    await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
    await heading(page, "diary").waitFor();
    t.true(sent.some((text) => text.includes(`ed25519:${owner.publicKey}`)));
    const pem = (await readFile(path, "utf8")).split("\n")[1]!;
    t.false(sent.some((text) => text.includes(seed) || text.includes(pem) || text.includes(encodeURIComponent(pem))));
    t.is(await page.evaluate("sessionStorage.length + document.cookie.length"), 0);
    // The browser stores headers that the key signed, and not the key.
    const stored = JSON.stringify((await context.storageState()).origins);
    t.true(stored.includes(`ed25519:${owner.publicKey}`));
    t.false([seed, pem].some((secret) => stored.includes(secret)));
    t.is(await page.locator("#key").inputValue(), "");
    await page.getByRole("button", { name: "Sign out" }).click();
    await heading(page, "No program to show").waitFor();
    await signIn(page);
    await heading(page, "diary").waitFor();
    await page.reload();
    await heading(page, "diary").waitFor();
    // Signing out on one page signs out on each, and removes what is stored.
    const other = await context.newPage();
    await other.goto(page.url());
    await heading(other, "diary").waitFor();
    await other.getByRole("button", { name: "Sign out" }).click();
    await heading(page, "No program to show").waitFor();
    t.is(await page.evaluate("localStorage.length"), 0);
    await page.reload();
    await heading(page, "No program to show").waitFor();
  },
);

testBrowser.serial("shows markup in names and documents as text", async (t) => {
  const { page, errors } = await open(t, `/program/${addresses.odd}`);
  await heading(page, markup).waitFor();
  await page.getByText("Original text").click();
  await page.getByRole("button", { name: `Verify ${markup}` }).click();
  await page.getByRole("status").filter({ hasText: "Verified" }).waitFor();
  for (const [route, title] of [
    [`/owner/${owner.publicKey}`, /^Owner /],
    ["/search/o", "Search: o"],
    [`/search/${encodeURIComponent(`${markup} `)}`, markup],
  ] as const) {
    await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
    await heading(page, title).waitFor();
    t.is(await page.locator("img").count(), 0);
  }
  t.notRegex(await page.title(), /^markup$/);
  t.deepEqual(errors, []);
});

testBrowser.serial("shows all digits of numbers, and the reason for a value without verification", async (t) => {
  const { page } = await open(t, `/program/${addresses.notes}`);
  await heading(page, "notes").waitFor();
  await page.getByText("12345678901234567890").first().waitFor();
  await page.getByText("1.50", { exact: true }).first().waitFor();
  await page.getByText("Set field: title", { exact: true }).waitFor();
  // The node returns another value than the proof has.
  await page.route(`**/storage-program/${addresses.notes}`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace('"Changed"', '"A lie"') });
  });
  await page.reload();
  await page.getByText('"A lie"').first().waitFor();
  await page.getByRole("button", { name: "Verify title" }).click();
  await page
    .getByRole("status")
    .filter({ hasText: "✗ Not verified. The proof shows another value: the field has changed" })
    .waitFor();
  await page.getByRole("button", { name: "Verify the program" }).click();
  await page
    .getByRole("status")
    .filter({ hasText: "✗ Not verified. The proof shows another program: it has changed" })
    .waitFor();
  // The reader trusts the genesis of another network.
  await page.getByText("Trusted genesis").click();
  await page.getByLabel("Hash of the genesis that you trust").fill(`0x${"1".repeat(64)}`);
  await page.getByRole("button", { name: "Trust this genesis" }).click();
  await page.getByRole("button", { name: "Verify n", exact: true }).click();
  await page.getByRole("status").filter({ hasText: "✗ Not verified. The genesis is that of the network" }).waitFor();
  t.is(await page.getByText("✓ Verified.").count(), 0);
});

testBrowser.serial("adds new blocks to the list, and stops while it is paused", async (t) => {
  const { page } = await open(t, "/");
  const { number } = await askJson<{ number: number }>(node.port, "/chain/head");
  const list = page.getByRole("table", { name: "Latest blocks" });
  const rowOf = (block: number): Locator =>
    list.getByRole("row").filter({ has: page.getByRole("link", { name: String(block), exact: true }) });
  await rowOf(number).waitFor();
  const { hash } = await client.submit(setField(addresses.notes, "title", "Again"));
  const { blockNumber } = await client.waitFor(hash);
  await rowOf(Number(blockNumber)).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  const rows = await list.getByRole("row").allTextContents();
  const later = await client.submit(setField(addresses.notes, "title", "And again"));
  const { blockNumber: last } = await client.waitFor(later.hash);
  // The header still updates.
  await page
    .getByRole("banner")
    .getByRole("link", { name: `Block ${last}` })
    .waitFor();
  t.deepEqual((await list.getByRole("link").allTextContents()).includes(String(last)), false);
  t.is(await list.getByRole("row").count(), rows.length);
  await page.getByRole("button", { name: "Pause" }).click();
  await rowOf(Number(last)).waitFor();
});

testBrowser.serial("works by keyboard, and its links can be shared", async (t) => {
  const { page, context } = await open(t, "/");
  await heading(page, "Overview").waitFor();
  const focused = async () =>
    String(await page.evaluate("document.activeElement.textContent || document.activeElement.id"));
  await page.keyboard.press("Tab");
  t.is(await focused(), "Skip to content");
  await page.keyboard.press("Enter");
  t.is(await page.evaluate("document.activeElement.id"), "main");
  // The title of a new view is focused, so that a screen reader reads it.
  await page.getByRole("link", { name: "Tree", exact: true }).focus();
  await page.keyboard.press("Enter");
  await heading(page, "Commitment tree").waitFor();
  t.is(await focused(), "Commitment tree");
  await page.getByLabel(/^Commitment, 0x/).fill(element(102));
  await page.keyboard.press("Enter");
  await heading(page, /^Commitment 0x/).waitFor();
  await page.getByRole("button", { name: "Verify this path" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("status").filter({ hasText: "✓ Verified. Hashed upwards" }).waitFor();
  // A dialog takes the focus, and returns it when it closes.
  const opener = page.getByRole("button", { name: "Sign in", exact: true });
  await opener.focus();
  await page.keyboard.press("Enter");
  t.is(await page.evaluate("document.activeElement.id"), "key");
  await page.keyboard.press("Escape");
  t.is(await focused(), "Sign in");
  // The link opens the same view in another page, and going back shows the previous view.
  const other = await context.newPage();
  await other.goto(page.url());
  await heading(other, /^Commitment 0x/).waitFor();
  await page.goBack();
  await heading(page, "Commitment tree").waitFor();
});

testBrowser.serial("does not verify the path of another commitment than the requested one", async (t) => {
  const { page } = await open(t, "/tree");
  await heading(page, "Commitment tree").waitFor();
  await page.getByText(/^\d of 1,048,576$/).waitFor();
  await page.route("**/zk/merkle/proof/**", async (route) => {
    await route.fulfill({
      response: await route.fetch({
        url: route
          .request()
          .url()
          .replace(/[^/]+$/, element(102)),
      }),
    });
  });
  await page.getByLabel(/^Commitment, 0x/).fill(element(103));
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Verify this path" }).click();
  await page.getByText("The node returned the path of another commitment.", { exact: true }).waitFor();
  t.pass();
});

testBrowser.serial(
  "axe finds no accessibility problem in any view, on desktop and phone, in light and dark colors",
  async (t) => {
    t.timeout(300_000, "axe checks each element in each variant of the page");
    const { page, errors } = await open(t, "/");
    const views = [
      ["overview", "/", "Overview", allVariants],
      ["block", "/block/1", "Block 1", twoVariants],
      ["transaction", `/transaction/${changeHash}`, /^Transaction /, twoVariants],
      ["program", `/program/${addresses.notes}`, "notes", allVariants],
      ["private", `/program/${addresses.diary}`, "No program to show", twoVariants],
      ["owner", `/owner/${owner.publicKey}`, /^Owner /, twoVariants],
      ["commitment", `/tree/${element(102)}`, /^Commitment 0x/, twoVariants],
      ["peers", "/peers", "Peers", twoVariants],
      ["search", "/search/o", "Search: o", twoVariants],
    ] as const;
    for (const [name, route, title, ways] of views) {
      await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
      await heading(page, title).waitFor();
      if (name === "program") {
        await page.getByRole("button", { name: "Verify title" }).click();
        await page.getByText("✓ Verified.").waitFor();
        await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
      }
      await inspect(t, page, `explore-${name}`, ways);
    }
    await page.setViewportSize(phone);
    // A narrow window has the button in the menu.
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("button", { name: "Sign in", exact: true }).first().click();
    await inspect(t, page, "explore-sign-in", twoVariants);
    t.deepEqual(
      errors.filter((text) => !text.includes("status of 40")),
      [],
    );
  },
);

testBrowser.serial("shows a message for missing items, unknown routes and a node that does not respond", async (t) => {
  const { page } = await open(t, `/block/${element(1)}`);
  await heading(page, "Not found").waitFor();
  for (const [route, text] of [
    ["/block/999999", "Block 999999"],
    ["/nowhere/1/2", "Nothing here"],
    ["/%ZZ", "Nothing here"],
    [`/transaction/${element(1)}`, /^Transaction /],
    [`/nullifier/${element(7)}`, /^Nullifier /],
    ["/program/stor-1", "Nothing here"],
    ["/", "Overview"],
  ] as const) {
    await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
    await heading(page, text).waitFor();
  }
  await node.stop();
  await page.getByRole("alert").filter({ hasText: "No updates: The node does not respond." }).waitFor();
  t.regex(await page.title(), /^Overview · /);
});
