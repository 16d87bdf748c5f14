/** Tests the API reference, /docs, in a browser: list, forms, examples of the node, identity, responses. */
import type { ExecutionContext } from "ava";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { addCommitment, createGatehouse, createProgram, jsonText, keyFromPem } from "gatehouse-client";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { startMember, startTestNode, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
import { getRaw, inspect, phone, threeVariants } from "../helpers/process/pages.js";
import { askJson } from "../helpers/wire/plain-client.js";

const testBrowser = testUnless(whyNoBrowser);
const file = fileTeardown();
const owner = testKey(70);
const commitment = `0x${"5".padStart(64, "0")}`;
let node: TestNode;
let browser: Browser;
let keyFile: string;
let pem: string;
/** Addresses of a public program and of a private one. */
let addresses: Readonly<Record<"notes" | "diary", string>>;
let transactionHash: string;

testBrowser.before(async () => {
  [node, browser] = await Promise.all([startMember(file), launchBrowser()]);
  keyFile = join(await temporaryDirectory(file), "identity.key");
  await writeKey(keyFile, owner);
  pem = await readFile(keyFile, "utf8");
  const client = createGatehouse(node.rpcUrl, { signer: keyFromPem(pem) });
  file.teardown(() => client.close());
  const store = async (name: string, data: string, access: "public" | "owner"): Promise<string> => {
    const { hash, storageAddress } = await client.submit(createProgram({ name, data: jsonText(data), access }));
    await client.waitFor(hash);
    return storageAddress!;
  };
  const notes = await store("garden notes", '{"title":"a","entries":[1,2]}', "public");
  const diary = await store("diary", '{"title":"secret"}', "owner");
  addresses = { notes, diary };
  const { hash } = await client.submit(addCommitment(commitment));
  await client.waitFor(hash);
  transactionHash = hash;
});
testBrowser.after(() => browser.close());

const open = async (t: ExecutionContext, fragment = "", options: BrowserContextOptions = {}) =>
  await openLoaded(t, browser, `${node.rpcUrl}/docs${fragment}`, options);

const operation = (page: Page, id: string) => page.locator(`[id='${id}']`);

testBrowser.serial("lists all operations by method and path first, and finds them", async (t) => {
  const { page, errors, requests } = await open(t);
  const { paths } = await askJson<{ paths: Record<string, Record<string, { summary: string }>> }>(
    node.port,
    "/openapi.json",
  );
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const textsOf = async (selector: string) =>
    (await page.locator(selector).allTextContents()).map((text) => text.replace(/\s+/g, " ").trim()).sort();
  t.deepEqual(await textsOf("main h3"), [...routes].sort());
  t.deepEqual(await textsOf("nav:not([aria-label=Pages]) li a"), [...routes].sort());
  t.is(await page.getByRole("heading", { level: 1 }).count(), 1);

  await page.getByRole("searchbox", { name: "Search the operations" }).fill("programs /storage-program/owner");
  await page.getByText(`1 of ${routes.length} operations`).waitFor();
  t.deepEqual(await page.locator(".operation:visible h3 code").allTextContents(), ["/storage-program/owner/{owner}"]);
  t.is(await page.locator("nav:not([aria-label=Pages]) li a:visible").count(), 1);
  t.deepEqual(await page.locator(".area:visible h2").allTextContents(), ["storage"]);
  await page.getByRole("searchbox").fill("wombat");
  await page.getByText(`0 of ${routes.length} operations`).waitFor();
  // A link shows the operation that it names, even if the search hides it.
  await page.evaluate("location.hash = 'storage.getField'");
  await operation(page, "storage.getField").waitFor();
  t.true(requests.every((url) => url.startsWith(node.rpcUrl) || url.startsWith("data:")));
  t.deepEqual(errors, []);
});

testBrowser.serial("a link to an operation shows its heading below everything that stays in place", async (t) => {
  for (const viewport of [{ width: 1280, height: 800 }, phone]) {
    const { page } = await open(t, "#storage.getField", { viewport });
    await operation(page, "storage.getField").getByText("on this node").first().waitFor();
    const covered = `(() => {
      const { left, top, height } = document.querySelector("[id='storage.getField'] h3 .method").getBoundingClientRect();
      const found = document.elementFromPoint(left + 2, top + height / 2);
      return found?.closest("h3") === null ? found.outerHTML.slice(0, 80) : top < 0 || top > 250 ? top : "";
    })()`;
    await page.waitForFunction(`(${covered}) === ""`, undefined, { timeout: 10_000 }).catch(() => undefined);
    t.is(await page.evaluate(covered), "", JSON.stringify(viewport));
  }
});

testBrowser.serial("fills the forms with examples that exist on the node", async (t) => {
  const { page } = await open(t, "#storage.getFieldItem");
  const valueOf = (id: string, name: string) => page.locator(`[id='${id}-${name}']`).inputValue();
  await operation(page, "storage.getFieldItem").getByText("on this node").first().waitFor();
  t.is(await valueOf("storage.getFieldItem", "storageAddress"), addresses.notes);
  t.is(await valueOf("storage.getFieldItem", "field"), "entries");
  t.is(await valueOf("storage.searchPrograms", "q"), "garden notes");
  t.is(await valueOf("storage.listProgramsByOwner", "owner"), owner.publicKey);
  t.is(await valueOf("chain.getTransaction", "hash"), transactionHash);
  t.is(await valueOf("zk.getMerkleProof", "commitment"), commitment);
  // Every operation that only reads responds to its filled form, except one for which the node has no example.
  for (const form of await page.locator("form[data-method=GET]:not([data-stream])").all()) {
    const id = await form.getAttribute("data-rpc");
    const button = form.getByRole("button", { name: /^Send/ });
    const response = page.waitForResponse((each) => each.request().resourceType() === "fetch");
    await button.click();
    await response;
    await form.locator(".response .status").waitFor();
    const status = await form.locator(".response .status strong").textContent();
    t.regex(status!, id === "attestation.getAttestationInfo" ? /^\d/ : /^(200|404 .*tlsnotary|503)/, String(id));
  }
  await operation(page, "zk.getNullifier").getByText("documented; this node has none yet").waitFor();
});

testBrowser.serial("shows status, reason, its documentation, headers and body of a response", async (t) => {
  const { page, errors } = await open(t, "#storage.getField");
  const { storageAddress, field } = { storageAddress: /^storageAddress/, field: /^field/ };
  const form = operation(page, "storage.getField");
  await form.getByText("on this node").first().waitFor();
  const send = async (address: string, name: string) => {
    await form.getByLabel(storageAddress).fill(address);
    await form.getByLabel(field).fill(name);
    const response = page.waitForResponse((each) => each.url().includes("/field/"));
    await form.getByRole("button", { name: "Send: GET /storage-program/{storageAddress}/field/{field}" }).click();
    const { url } = { url: (await response).url() };
    await form.locator(".response .status").waitFor();
    return { url, text: await form.locator(".response").innerText() };
  };
  t.regex((await send("stor/1", "a b")).url, /\/storage-program\/stor%2F1\/field\/a%20b$/);
  t.regex(await form.locator(".response").innerText(), /^400 .*INVALID_REQUEST after \d+ ms/);
  const found = await send(addresses.notes, "title");
  t.regex(found.text, /^200 OK after \d+ ms/);
  await form.getByText(/\d+ response headers/).click();
  t.regex(await form.getByRole("region", { name: /^Headers/ }).innerText(), /cache-control: .*\n.*content-type: /s);
  t.regex(await form.getByRole("region", { name: /^Response/ }).innerText(), /\n {2}"value": "a"/);
  t.true((await form.locator(".response .code-string").count()) > 0);
  // What is not there, not readable, and not a field differ as the node says it.
  const absent = await send(`stor-${"0".repeat(40)}`, "title");
  t.regex(absent.text, /^404 .*NOT_FOUND.*does not exist\. A later block may create it/s);
  const unreadable = await send(addresses.diary, "title");
  t.regex(unreadable.text, /^404 .*NOT_FOUND.*[Ss]ign/s);
  t.regex((await send(addresses.notes, "nothing")).text, /^404 .*FIELD_NOT_FOUND.*has no field with this name/s);
  t.deepEqual(
    errors.filter((text) => !/status of 40[04]/.test(text)),
    [],
  );
});

testBrowser.serial("says what a node without a chain does not have yet, as the node says it", async (t) => {
  const { rpcUrl } = await startTestNode(t);
  const { page } = await openLoaded(t, browser, `${rpcUrl}/docs#chain.getBlock`);
  const form = operation(page, "chain.getBlock");
  const origin = form.locator(".parameter .origin").first();
  await origin.getByText("This example is documented").waitFor();
  t.regex(
    await origin.innerText(),
    /asked for one, the node said: The node has no genesis block yet; start it with --genesis FILE\.$/,
  );
  const head = operation(page, "chain.getHead");
  await head.getByRole("button", { name: /^Send/ }).click();
  await head.locator(".response .status").waitFor();
  t.regex(
    await head.locator(".response").innerText(),
    /^503 .*STATE_NOT_READY after.*The node is not in the state that the request requires/s,
  );
});

testBrowser.serial("one field takes the line that the command line prints", async (t) => {
  const command = ["dist/src/main.js", "identity", "headers", "--key", keyFile, "--node", node.rpcUrl];
  const { page } = await open(t, "#storage.getProgramData");
  const form = operation(page, "storage.getProgramData");
  await form.getByText("on this node").first().waitFor();
  const line = page.getByLabel("Line that the command prints");
  await line.fill("-H 'identity: ed25519:0x12' -H 'timestamp: 1'");
  await page.getByText("This text has an invalid header identity.").waitFor();
  for (const args of [[], ["--json"]]) {
    const { stdout } = await promisify(execFile)(process.execPath, [...command, ...args]);
    await line.fill(stdout);
    await page.getByText(`Requests are signed by the line of ${owner.publicKey}`).waitFor();
    await form.getByLabel(/^storageAddress/).fill(addresses.diary);
    await form.getByRole("button", { name: /^Send/ }).click();
    await form
      .getByRole("region", { name: /^Response/ })
      .getByText("secret")
      .waitFor();
  }
  // The sample has the headers; an operation that ignores the caller has none.
  t.regex(await form.getByRole("region", { name: /^Code/ }).innerText(), /-H 'signature: 0x[0-9a-f]{128}'/);
  t.notRegex(await operation(page, "info.getVersion").getByRole("region", { name: /^Code/ }).innerText(), /-H/);
  await line.fill("");
  await page.getByText("Requests of this page are anonymous.").waitFor();
});

testBrowser.serial("uses the session of the explorer, until the reader signs out", async (t) => {
  const { page } = await openLoaded(t, browser, `${node.rpcUrl}/explore#/program/${addresses.diary}`);
  await page.getByRole("button", { name: "Sign in", exact: true }).first().click();
  await page.getByLabel(/^Private key/).fill(pem);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "diary" }).waitFor();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "API" }).click();
  await page.getByText(`Requests are signed by the key with which you signed in: ${owner.publicKey}`).waitFor();
  const whoCalls = page.locator("#who-calls");
  t.true(await whoCalls.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth));
  const form = operation(page, "storage.getProgramData");
  await form.getByText("on this node").first().waitFor();
  await form.getByLabel(/^storageAddress/).fill(addresses.diary);
  const send = async (status: number) => {
    const response = page.waitForResponse((each) => each.url().endsWith(`${addresses.diary}/all`));
    await form.getByRole("button", { name: /^Send/ }).click();
    t.is((await response).status(), status);
  };
  await send(200);
  const stored = String(await page.evaluate("JSON.stringify(localStorage)"));
  t.false(stored.includes(pem.split("\n")[1]!));
  await page.locator("main").getByRole("button", { name: "Sign out" }).click();
  await page.getByText("Requests of this page are anonymous.").waitFor();
  await send(404);
  t.is(await page.evaluate("localStorage.getItem('gatehouse.session')"), null);
});

testBrowser.serial("the header, the list of operations and the text have common edges", async (t) => {
  const { page } = await open(t);
  const edges = (selector: string) =>
    page.evaluate<number[]>(`(() => {
      const { left, right } = document.querySelector("${selector}").getBoundingClientRect();
      return [left, right].map(Math.round);
    })()`);
  for (const width of [1280, 1920]) {
    await page.setViewportSize({ width, height: 800 });
    const [[left, right], [listLeft], [, textRight]] = [
      await edges(".shell nav"),
      await edges("#contents"),
      await edges("main"),
    ];
    t.deepEqual([left, right], [listLeft, textRight], String(width));
  }
  // The command and the key of the reader fit on a phone.
  await page.setViewportSize({ width: 400, height: 800 });
  const command = page.getByRole("region", { name: "Command" });
  t.true(await command.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth));
});

testBrowser.serial("a session for another network is dropped", async (t) => {
  const { page, errors } = await open(t);
  const pass = {
    ...{ identity: `ed25519:${owner.publicKey}`, timestamp: String(Date.now()) },
    ...{ network: `0x${"1".repeat(64)}`, signature: `0x${"2".repeat(128)}` },
  };
  const session = JSON.stringify({ publicKey: owner.publicKey, passes: [pass] });
  await page.evaluate(`localStorage.setItem("gatehouse.session", ${JSON.stringify(session)})`);
  await page.reload();
  await page.waitForFunction("localStorage.getItem('gatehouse.session') === null");
  await page.getByText("Requests of this page are anonymous.").waitFor();
  t.deepEqual(
    errors.filter((text) => !text.includes("status of 401")),
    [],
  );
});

testBrowser.serial("passes axe, has no text that is cut off, and wide code scrolls in itself", async (t) => {
  t.timeout(300_000, "axe checks each element in each variant of the page");
  const { page, errors } = await open(t);
  await page.getByText("on this node").first().waitFor();
  // Opens all details, since axe does not check hidden elements.
  await page.evaluate("for (const details of document.querySelectorAll('main details')) details.open = true");
  const form = operation(page, "storage.getProgramData");
  await form.getByRole("button", { name: /^Send/ }).click();
  await form.getByRole("region", { name: /^Response/ }).waitFor();
  await inspect(t, page, "docs", threeVariants);
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    const wide = await page.evaluate(`[...document.querySelectorAll("main *, nav *")]
      .filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 1
        && !/^(PRE|INPUT|TEXTAREA|SELECT)$/.test(each.tagName) && getComputedStyle(each).display !== "inline")
      .map((each) => each.outerHTML.slice(0, 120))`);
    t.deepEqual(wide, [], String(width));
    t.is(await page.evaluate("document.documentElement.scrollWidth"), width);
  }
  t.true((await getRaw["HTTP/1.1"](node.port, "/docs", { "accept-encoding": "gzip" })).body.length < 150_000);
  t.deepEqual(errors, []);
});

testBrowser.serial("the list of operations is folded on a phone, and opens an operation", async (t) => {
  const { page } = await open(t, "", { viewport: phone });
  const link = page.getByRole("navigation", { name: "Operations" }).getByRole("link", { name: "GET /chain/head" });
  t.false(await link.isVisible());
  await page.getByText("Operations", { exact: true }).click();
  await link.click();
  t.false(await link.isVisible());
  t.true(page.url().endsWith("#chain.getHead"));
});

testBrowser.serial("shows all operations without JavaScript", async (t) => {
  const { page } = await open(t, "", { javaScriptEnabled: false });
  await operation(page, "health.getHealth").getByText("Response 200", { exact: true }).click();
  await page.getByText("Subsystems by name: chain, rpc").filter({ visible: true }).first().waitFor();
  t.true(await page.locator("main noscript p").isVisible());
  t.false(await page.getByRole("button", { name: /^Send/ }).first().isVisible());
});
