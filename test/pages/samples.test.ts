/** Runs the code samples of /docs: each sends the request of its form, and executes nothing else. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Browser } from "playwright-core";
import { run } from "../helpers/process/programs.js";
import { launchBrowser, openPage, whyNoBrowser } from "../helpers/process/browser.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { isInstalled, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";

/** Programs that run a sample, by the names that the page shows: file name, command, arguments before the file. */
const runners: Readonly<Record<string, readonly [file: string, command: string, ...args: string[]]>> = {
  curl: ["sample.sh", "sh"],
  JavaScript: ["sample.mjs", process.execPath],
  Python: ["sample.py", "python3"],
  Go: ["sample.go", "go", "run"],
};

const testBrowser = testUnless(whyNoBrowser);
const file = fileTeardown();
let node: TestNode;
let browser: Browser;
testBrowser.before(async () => {
  node = await startMember(file);
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

// Quotes and commands of shells, and a number whose digits JavaScript would lose.
const signature = `0x00'"$(exit 9)\\`;
const body = `{"transaction": "it's \\"é\\" $(exit 9) \`exit 9\`", "n": 12345678901234567890}\nEOF`;

for (const [language, [name, command, ...args]] of Object.entries(runners)) {
  const missing = whyNotInstalled({ [command]: command === process.execPath || isInstalled(command) });
  testUnless(whyNoBrowser ?? missing)(`a sample in ${language} sends the request of its form`, async (t) => {
    t.timeout(240_000, "Go compiles its standard library once");
    const { page, go, errors } = await openPage(t, browser, `${node.rpcUrl}/docs#chain.submitTransaction`);
    await go();
    await page.getByText("Caller identity").click();
    await page.getByLabel("signature").fill(signature);
    const operation = page.locator("[id='chain.submitTransaction']");
    await operation.getByText("Code sample").click();
    const select = operation.getByLabel(/^Language:/);
    t.deepEqual(await select.locator("option").allTextContents(), Object.keys(runners));
    await select.selectOption(language);
    // A later change of the form changes the sample.
    await operation.getByLabel("Body, JSON").fill(body);
    const sample = await operation.getByRole("region", { name: /^Code:/ }).textContent();
    t.true(sample!.includes(`${node.rpcUrl}/chain/transactions`), sample!);

    const received: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      received.push(request);
      void text(request).then((sent) => response.writeHead(418).end(`short and stout: ${sent}`));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.teardown(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const path = join(await temporaryDirectory(t), name);
    await writeFile(path, sample!.replaceAll(node.rpcUrl, url));
    const { stdout } = await run(command, [...args, path]);
    t.is(stdout.trimEnd(), `${language === "curl" ? "" : "418 "}short and stout: ${body}`);
    t.deepEqual(
      received.map(({ method, url: target, headers }) => [method, target, headers["signature"]]),
      [["POST", "/chain/transactions", signature]],
    );
    t.deepEqual(errors, []);
  });
}

testBrowser("a sample names the parameters without a value, quotes the others, and is copied", async (t) => {
  const { page, go, errors } = await openPage(t, browser, `${node.rpcUrl}/docs#storage.getField`);
  await go();
  const operation = page.locator("[id='storage.getField']");
  await operation.getByText("Code sample").click();
  await operation.getByLabel(/^field in/).fill("a'&b");
  const code = operation.getByRole("region", { name: /^Code:/ });
  t.is(await code.textContent(), `curl -X GET '${node.rpcUrl}/storage-program/{storageAddress}/field/a'\\''%26b'`);
  await operation.getByRole("button", { name: /^Copy code:/ }).click();
  await operation.getByText("Copied", { exact: true }).waitFor();
  // The language applies to each sample.
  await operation.getByLabel(/^Language:/).selectOption("Python");
  await page.evaluate("location.hash = 'storage.searchPrograms'");
  const other = page.locator("[id='storage.searchPrograms']");
  await other.getByText("Code sample").click();
  await other.getByText("from urllib.request").waitFor();
  t.is(await other.getByLabel(/^Language:/).inputValue(), "Python");
  t.deepEqual(errors, []);
});
