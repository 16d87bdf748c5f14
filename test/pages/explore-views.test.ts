/** Tests views of the explorer in a browser: copying, tables, verification, live status, differences, hostile data. */
import type { ExecutionContext } from "ava";
import {
  addCommitment,
  appendItem,
  createGatehouse,
  createProgram,
  deleteField,
  type Gatehouse,
  jsonText,
  keyFromSeed,
  type Operation,
  setField,
  signTransaction,
  updateAccess,
} from "gatehouse-client";
import { readFile } from "node:fs/promises";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { testKey } from "../helpers/chain/keys.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { heading, launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
import { twoVariants, inspect } from "../helpers/process/pages.js";
import { askJson } from "../helpers/wire/plain-client.js";

const signer = keyFromSeed("5b".repeat(32));
const owner = testKey(0x5b);
/** Name that is a spreadsheet formula, has HTML markup, and reverses the direction of the text after it. */
const hostile = `=HYPERLINK("http://evil")<img src=x onerror=document.title='markup'>\u202Egnp.exe`;
const element = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;

const file = fileTeardown();
let node: TestNode;
let client: Gatehouse;
let network: string;
let nonce = BigInt(Date.now());
/** Addresses of programs. */
let addresses: { readonly notes: string; readonly odd: string; readonly wide: string };
/** Hashes of the transactions that changed `notes`, in order. */
const changes: string[] = [];

const testBrowser = testUnless(whyNoBrowser);
let browser: Browser;

testBrowser.before(async (t) => {
  t.timeout(300_000, "a browser and a node start slowly on a busy machine");
  browser = await launchBrowser();
  node = await startMember(file);
  client = createGatehouse(node.rpcUrl, { signer });
  file.teardown(() => client.close());
  network = (await askJson<{ genesisHash: string }>(node.port, "/chain/head")).genesisHash;
  const create = async (name: string, data: string): Promise<string> => {
    const { hash, storageAddress } = await client.submit(
      createProgram({ name, data: jsonText(data), access: "public" }),
    );
    await client.waitFor(hash);
    if (name === "notes") {
      changes.push(hash);
    }
    return storageAddress;
  };
  const change = async (operation: Operation): Promise<void> => {
    const { hash } = await client.submit(operation);
    await client.waitFor(hash);
    changes.push(hash);
  };
  const notes = await create("notes", '{"title": "Hello", "n": 1.50, "list": [{"a": 1}], "old": true}');
  await change(setField(notes, "title", "Changed"));
  await change(appendItem(notes, "list", { b: 2 }));
  await change(deleteField(notes, "old"));
  await change(updateAccess(notes, "public"));
  const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field ${i}`, i]));
  addresses = {
    notes,
    odd: await create(hostile, JSON.stringify({ long: "x".repeat(1_000_000), [`\u202E${hostile}`]: hostile })),
    wide: await create("wide", JSON.stringify(fields)),
  };
  nonce = BigInt(Date.now()) + 1_000_000n;
});
testBrowser.after(() => browser.close());

async function open(t: ExecutionContext, route: string, options: BrowserContextOptions = {}) {
  t.timeout(300_000, "a browser is slow on a machine with two cores");
  return await openLoaded(t, browser, `${node.rpcUrl}/explore#${route}`, options);
}

const rowsOf = (page: Page, label: string): Locator =>
  page.getByRole("table", { name: label, exact: true }).locator("tbody tr");

/** Downloads the CSV file of a table. */
async function csvOf(page: Page, label: string): Promise<string> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: `Download as CSV: ${label}` }).click(),
  ]);
  return await readFile(await download.path(), "utf8");
}

testBrowser.serial("copies a hash with one click, and verifies a block", async (t) => {
  const { page, context, errors } = await open(t, "/block/1");
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await heading(page, "Block 1").waitFor();
  const { hash, header, block } = await askJson<{
    hash: string;
    header: { stateRoot: string };
    block: { signature: string };
  }>(node.port, "/chain/blocks/1");
  await page.getByText(header.stateRoot, { exact: true }).waitFor();
  const signature = Buffer.from(block.signature, "base64").toString("hex");
  t.is(await page.locator("dd code[title]").filter({ hasText: "0x" }).first().getAttribute("title"), `0x${signature}`);
  await page.getByRole("button", { name: "Copy " }).first().click();
  await page.getByRole("status").filter({ hasText: "Copied" }).waitFor({ state: "attached" });
  t.is(await page.evaluate("navigator.clipboard.readText()"), hash);
  await page.getByRole("button", { name: "Verify this block" }).click();
  await page.getByText("✓ Verified. An authority of the network signed this block.").waitFor();
  t.deepEqual(await page.getByRole("list", { name: "Steps" }).locator("strong").allTextContents(), [
    ...["Transactions", "Header", "Authority", "Signature", "Age"],
  ]);
  await page.getByRole("link", { name: "Block 2 →" }).click();
  await heading(page, "Block 2").waitFor();
  await page.getByRole("link", { name: "← Block 1" }).waitFor();
  t.deepEqual(errors, []);
});

testBrowser.serial("rejects a block whose header, transactions or signature were changed", async (t) => {
  const { page } = await open(t, "/");
  for (const [change, step] of [
    [(text: string) => text.replace(/"stateRoot":"0x.{8}/, '"stateRoot":"0x00000000'), "Header"],
    [(text: string) => text.replace(/("transactionHashes":\["0x).{8}/, "$100000000"), "Transactions"],
    [(text: string) => text.replace(/("signature":")..../, "$1AAAA"), "Signature"],
  ] as const) {
    await page.unrouteAll();
    await page.route("**/chain/blocks/1", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: change(await response.text()) });
    });
    await page.goto("about:blank");
    await page.goto(`${node.rpcUrl}/explore#/block/1`);
    await page.getByRole("button", { name: "Verify this block" }).click();
    await page.getByText("✗ Not verified.").waitFor();
    const failed = page.getByRole("list", { name: "Steps" }).locator("li").filter({ hasText: "✗" });
    t.is(await failed.locator("strong").textContent(), step);
  }
});

testBrowser.serial("a table has pages, filters in the URL, and a CSV file without formulas", async (t) => {
  const { page } = await open(t, `/owner/${owner.publicKey}`);
  await heading(page, /^Owner /).waitFor();
  const text = await csvOf(page, "Programs");
  t.regex(text, /^\ufeffName,Address,Size,Changed\r\n/);
  t.is(text.trimEnd().split("\r\n").length, 4);
  t.true(text.includes(`"'=HYPERLINK(""http://evil"")<img`), text);
  t.notRegex(text, /(^|,|\n)"?[=+@-]/);

  // Simulates a node with 1,000 programs.
  const { programs } = await askJson<{ programs: readonly object[] }>(
    node.port,
    `/storage-program/owner/${owner.publicKey}`,
  );
  const many = Array.from({ length: 1_000 }, (_, i) => ({ ...programs[0]!, programName: `program ${i}` }));
  await page.route("**/storage-program/owner/**", async (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [start, size] = [Number(query.get("pageToken") ?? 0), Number(query.get("limit"))];
    const end = start + size;
    await route.fulfill({
      json: {
        success: true,
        programs: many.slice(start, end),
        ...(end < many.length && { nextPageToken: String(end) }),
      },
    });
  });
  await page.reload();
  const rows = rowsOf(page, "Programs");
  await rows.filter({ hasText: "program 24" }).waitFor();
  t.is(await rows.count(), 25);
  await page.getByRole("button", { name: "Next page: Programs" }).click();
  await rows.filter({ hasText: "program 49" }).waitFor();
  t.is(await rows.count(), 25);
  await page.reload();
  await rows.filter({ hasText: "program 49" }).waitFor();
  await page.getByRole("button", { name: "First page: Programs" }).click();
  await rows.filter({ hasText: "program 24" }).waitFor();
  await page.getByLabel("Name contains").fill("program 99");
  await rows.filter({ hasText: "program 990" }).waitFor();
  t.is(await rows.count(), 11);
  t.regex(page.url(), /programs\.name=program\+99/);
  await page.reload();
  await rows.filter({ hasText: "program 990" }).waitFor();
  t.is(await rows.count(), 11);
  t.is((await csvOf(page, "Programs")).trimEnd().split("\r\n").length, 12);
  await page.getByLabel("Name contains").fill("");
  await rows.filter({ hasText: "program 24" }).waitFor();
  t.is((await csvOf(page, "Programs")).trimEnd().split("\r\n").length, 1_001);
  // A failed request shows an error, and the rows remain.
  await page.unrouteAll();
  await page.route("**/storage-program/owner/**", (route) => route.abort());
  await page.getByRole("button", { name: "Next page: Programs" }).click();
  await page.getByRole("alert").filter({ hasText: "The node does not respond." }).waitFor();
  t.is(await rows.count(), 25);
});

testBrowser.serial(
  "shows the steps and the limits of a verification, and a command that verifies independently",
  async (t) => {
    const { page, context } = await open(t, `/program/${addresses.notes}`);
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await heading(page, "notes").waitFor();
    await page.getByRole("button", { name: "Verify title" }).click();
    await page.getByText("✓ Verified. The field is").waitFor();
    await page.getByText("Step by step").click();
    const steps = page.getByRole("list", { name: "Steps" }).locator("li");
    t.deepEqual(await steps.locator("strong").allTextContents(), [
      ...["This page", "Field", "Document", "State root", "Header", "Signature", "Authority", "Age"],
    ]);
    t.is(await page.getByRole("img", { name: "passed" }).count(), 8);
    t.regex((await steps.nth(1).textContent())!, /"title" is "Changed"; a path of \d+ hash(es)? leads/);
    await steps.filter({ hasText: "which this node named" }).waitFor();
    await page.getByText("could send one that shows ✓ for anything").waitFor();
    await page.getByRole("button", { name: "Copy the command" }).click();
    t.is(
      await page.evaluate("navigator.clipboard.readText()"),
      `gatehouse storage get --node ${node.rpcUrl}/ --verify ${network} --save proof.json -- ${addresses.notes} 'title' && gatehouse verify proof.json --genesis ${network}`,
    );
    // The reader enters the genesis hash.
    await page.getByText("Trusted genesis").click();
    await page.getByLabel("Hash of the genesis that you trust").fill(network);
    await page.getByRole("button", { name: "Trust this genesis" }).click();
    await page.getByRole("button", { name: "Verify title" }).click();
    await page.getByText("✓ Verified. The field is").waitFor();
    await page.getByText("Step by step").click();
    await steps.filter({ hasText: "which you entered" }).waitFor();
    await inspect(t, page, "explore-verified", twoVariants);

    // Names the step that failed; the steps after it were not checked.
    for (const [change, failed, unchecked] of [
      [(text: string) => text.replace(/("signature":")..../, "$1AAAA"), "Signature", 6],
      [(text: string) => text.replace('\\"Changed\\"', '\\"Chanted\\"'), "Field", 1],
    ] as const) {
      await page.unrouteAll();
      await page.route("**/state/proof?*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: change(await response.text()) });
      });
      await page.getByRole("button", { name: "Verify title" }).click();
      await page.getByText("✗ Not verified.").waitFor();
      await page.getByRole("img", { name: "failed" }).waitFor();
      t.is(
        await steps
          .filter({ has: page.getByRole("img", { name: "failed" }) })
          .locator("strong")
          .textContent(),
        failed,
      );
      t.is(await page.getByRole("img", { name: "not checked" }).count(), unchecked);
      await page.unrouteAll();
      await page.getByRole("button", { name: "Verify title" }).click();
      await page.getByText("✓ Verified. The field is").waitFor();
    }
  },
);

testBrowser.serial("updates the status of a transaction from unknown to included without a reload", async (t) => {
  const operation = setField(addresses.notes, "title", "Live");
  const signed = await signTransaction(signer, { operation, network, nonce: nonce++ });
  const { page } = await open(t, `/transaction/${signed.hash}`);
  await page.getByText("not known here: this page waits for it").waitFor();
  await client.submitSigned(signed);
  await page.getByText("in a block", { exact: true }).waitFor();
  changes.push(signed.hash);
  await page.getByText('Sets the field "title" of').waitFor();
  await page.getByRole("listitem").filter({ hasText: "Fields: " }).filter({ hasText: "title" }).waitFor();
  await page.getByRole("listitem").filter({ hasText: "In a block" }).waitFor();
  await inspect(t, page, "explore-transaction-live", twoVariants);
  // Compares the values before and after the transaction.
  await page.getByRole("link", { name: "Values before and after" }).click();
  await heading(page, "notes").waitFor();
  const row = rowsOf(page, "Differences");
  await row.waitFor();
  t.is(await row.locator("del").textContent(), '"Changed"');
  t.is(await row.locator("ins").textContent(), '"Live"');
});

testBrowser.serial("compares two versions of a program field by field", async (t) => {
  const { page } = await open(t, `/program/${addresses.notes}?from=${changes[0]}&to=${changes[3]}`);
  await page.getByText("Computed in this page from 4 transactions.").waitFor();
  const rows = rowsOf(page, "Differences");
  const cells = await Promise.all((await rows.all()).map((row) => row.getByRole("cell").allTextContents()));
  t.deepEqual(
    cells.sort(([a], [b]) => a!.localeCompare(b!)),
    [
      ["list[1]", "added", "", '{"b":2}'],
      ["old", "removed", "true", ""],
      ["title", "changed", '"Hello"', '"Changed"'],
    ],
  );
  await page.getByRole("combobox", { name: "From", exact: true }).selectOption({ label: "Before it existed" });
  await page.getByRole("combobox", { name: "To", exact: true }).selectOption(changes[1]!);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("Computed in this page from 2 transactions.").waitFor();
  t.regex(page.url(), new RegExp(`to=${changes[1]}`));
  await rows.filter({ hasText: "Document" }).filter({ hasText: '"n": 1.50' }).waitFor();
  await page.getByLabel("Kind").selectOption("Set field");
  await rowsOf(page, "History").filter({ hasText: "Set field: title" }).first().waitFor();
  t.is(await rowsOf(page, "History").filter({ hasText: "Append" }).count(), 0);
  await inspect(t, page, "explore-differences", twoVariants);
});

testBrowser.serial("the history of a program has a filter by the kinds that its rows name", async (t) => {
  const { page } = await open(t, `/program/${addresses.notes}`);
  const kind = page.getByRole("region", { name: "History" }).getByLabel("Kind");
  t.deepEqual(
    (await kind.locator("option").allTextContents()).filter((text) => text.includes("_")),
    [],
  );
  await kind.selectOption("Create program");
  await page.getByText(/^1 row\. \d+ rows searched\./).waitFor();
});

testBrowser.serial("escapes hostile names, and shortens long texts and long lists of fields", async (t) => {
  const { page, errors } = await open(t, `/program/${addresses.odd}`);
  await heading(page, "\\u202egnp.exe").waitFor();
  t.is(await page.locator("img").count(), 0);
  // The direction mark is escaped in names. In documents it remains, and does not affect the text around it.
  t.notRegex((await page.locator("h1, .name, button, td, label").allTextContents()).join(), /\u202E/);
  t.is(await page.evaluate("getComputedStyle(document.querySelector('.fields code.string')).unicodeBidi"), "isolate");
  await page.getByRole("button", { name: "Show all 1000002 characters" }).click();
  t.true((await page.evaluate<number>("document.querySelector('.fields code.string').textContent.length")) > 1_000_000);
  t.is(await page.evaluate("document.documentElement.scrollWidth"), 1200);

  for (const route of [`/owner/${owner.publicKey}`, "/search/HYPERLINK "]) {
    await page.goto("about:blank");
    await page.goto(`${node.rpcUrl}/explore#${route}`);
    await page.getByText("HYPERLINK").first().waitFor();
    t.is(await page.locator("img").count(), 0);
  }

  await page.goto(`${node.rpcUrl}/explore#/program/${addresses.wide}`);
  await heading(page, "wide").waitFor();
  const fields = page.getByRole("list", { name: "Fields" }).locator(":scope > li");
  t.is(await fields.count(), 100);
  await page.getByRole("button", { name: "Show 100 of 9,900 more" }).click();
  t.is(await fields.count(), 200);
  await page.getByLabel("Name contains").fill("field 9999");
  await page.getByText("1 of 10,000 fields.").waitFor();
  await page.getByRole("button", { name: "Verify field 9999" }).click();
  await page.getByText("✓ Verified. The field is 9999.").waitFor();
  t.regex(page.url(), /fields\.name=field\+9999/);
  t.deepEqual(errors, []);
});

testBrowser.serial("shows the lag of peers, different blocks of peers, and the log as text", async (t) => {
  const { page, errors } = await open(t, "/");
  const { number } = await askJson<{ number: number }>(node.port, "/chain/head");
  const { hash } = await askJson<{ hash: string }>(node.port, "/chain/blocks/1");
  const peer = (url: string, block: number | null, block_hash: string | null, online = true) => ({
    connection: { string: url },
    identity: owner.publicKey,
    verification: { status: online, message: null, timestamp: null },
    sync: { status: true, block, block_hash },
    status: { online, timestamp: online ? Date.now() : null, ready: online },
  });
  await page.route("**/info", async (route) => {
    const response = await route.fetch();
    const info = (await response.json()) as object;
    await route.fulfill({
      json: {
        ...info,
        peerlist: [
          peer("https://even.example", number, null),
          peer("https://behind.example", 1, hash),
          peer(`https://${hostile}`, 1, element(1)),
          peer("https://away.example", null, null, false),
        ],
      },
    });
  });
  await page.route("**/public_logs", (route) =>
    route.fulfill({ json: [{ time: Date.now(), level: "warn", message: hostile }] }),
  );
  const visit = async (route: string, title: string): Promise<void> => {
    await page.evaluate(`location.hash = ${JSON.stringify(route)}`);
    await heading(page, title).waitFor();
  };
  await visit("/peers", "Peers");
  await rowsOf(page, "Peers").filter({ hasText: "even.example" }).filter({ hasText: "none" }).waitFor();
  await rowsOf(page, "Peers")
    .filter({ hasText: "behind.example" })
    .filter({ hasText: `${number - 1} blocks behind` })
    .waitFor();
  await page.getByRole("img", { name: "This node and 4 peers around it: 3 ready, 1 offline" }).waitFor();
  await page.getByLabel("State").selectOption("offline");
  await rowsOf(page, "Peers").filter({ hasText: "away.example" }).waitFor();
  t.is(await rowsOf(page, "Peers").count(), 1);
  await page.getByLabel("State").selectOption("");
  await rowsOf(page, "Peers").filter({ hasText: "even.example" }).waitFor();
  await inspect(t, page, "explore-peers-lag", twoVariants);

  await visit("/forks", "Forks");
  await rowsOf(page, "Blocks of peers").filter({ hasText: "behind.example" }).filter({ hasText: "the same" }).waitFor();
  await rowsOf(page, "Blocks of peers").filter({ hasText: "evil" }).filter({ hasText: "differs" }).waitFor();
  await inspect(t, page, "explore-forks", twoVariants);
  await visit("/log", "Public log");
  await rowsOf(page, "Public log").filter({ hasText: "HYPERLINK" }).waitFor();
  t.is(await page.locator("img").count(), 0);
  await inspect(t, page, "explore-log", twoVariants);
  await page.unrouteAll();
  await page.reload();
  await heading(page, "Public log").waitFor();
  await visit("/snapshots", "Snapshots");
  await page.getByText("This node loads no snapshot now.").waitFor();
  await inspect(t, page, "explore-snapshots", twoVariants);
  await visit(`/nullifier/${element(7)}`, "Nullifier");
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByText("✓ Verified. It is not spent.").waitFor();
  await visit(`/owner/${owner.publicKey}`, "Owner");
  await page.getByRole("button", { name: "Verify the nonce" }).click();
  await page.getByText("✓ Verified. The last nonce is").waitFor();
  t.deepEqual(errors, []);
});

testBrowser.serial("continues to follow a transaction after a restart of the node", async (t) => {
  const signed = await signTransaction(signer, { operation: addCommitment(element(5)), network, nonce: nonce++ });
  const { page } = await open(t, `/transaction/${signed.hash}`);
  await page.getByText("not known here: this page waits for it").waitFor();
  const { port, dir } = node;
  await node.stop();
  await page.getByRole("alert").filter({ hasText: "The node does not respond. This page tries again." }).waitFor();
  const flags = { genesis: "genesis.json", peers: "peers.json", "loop-interval": "0.1", "rpc-port": String(port) };
  node = await startTestNode(file, flags, dir);
  await page.getByRole("alert").filter({ hasText: "This page tries again." }).waitFor({ state: "hidden" });
  await client.submitSigned(signed);
  await page.getByText("in a block", { exact: true }).waitFor();
  await page.getByText("Its block added").waitFor();
  t.is(await page.getByRole("alert").filter({ visible: true }).count(), 0);
});
