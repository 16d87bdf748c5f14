/** Runs the code samples of /docs: each sends the request of its form, and executes nothing else. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Browser } from "playwright-core";
import type { ExecutionContext } from "ava";
import { storeProgram } from "../helpers/chain/submit.js";
import { run, toolProgram, whyNoBuf } from "../helpers/process/programs.js";
import { launchBrowser, openLoaded, whyNoBrowser } from "../helpers/process/browser.js";
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

/** The line of an identity, which the node of these tests does not check. */
const signature = `0x${"00".repeat(64)}`;
const line = `-H 'identity: ed25519:0x${"11".repeat(32)}' -H 'timestamp: 1' -H 'signature: ${signature}'`;
// Quotes and commands of shells, and a number whose digits JavaScript would lose.
const body = `{"transaction": "it's \\"é\\" $(exit 9) \`exit 9\`", "n": 12345678901234567890}\nEOF`;

/** Runs a sample with a server in place of the node. Returns what the sample printed, and the request. */
async function runSample(t: ExecutionContext, language: string, sample: string) {
  const received: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    received.push(request);
    void text(request).then((sent) => response.end(`short and stout: ${sent}`));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [name, command, ...args] = runners[language]!;
  const path = join(await temporaryDirectory(t), name);
  await writeFile(path, sample.replaceAll(node.rpcUrl, url));
  const { stdout } = await run(command, [...args, path]);
  t.is(received.length, 1);
  const [{ method, url: target, headers }] = received as [IncomingMessage];
  return { stdout: stdout.trimEnd(), method, url: target, headers };
}

for (const [language, [, command]] of Object.entries(runners)) {
  const missing = whyNotInstalled({ [command]: command === process.execPath || isInstalled(command) });
  testUnless(whyNoBrowser ?? missing)(`a sample in ${language} sends the request of its form`, async (t) => {
    t.timeout(240_000, "Go compiles its standard library once");
    const { page, errors } = await openLoaded(t, browser, `${node.rpcUrl}/docs#chain.submitTransaction`);
    const sampleOf = async (id: string) => {
      const operation = page.locator(`[id='${id}']`);
      await operation.getByLabel(/^Language:/).selectOption(language);
      return (await operation.getByRole("region", { name: /^Code:/ }).textContent())!;
    };
    const languages = page
      .locator("[id='chain.submitTransaction']")
      .getByLabel(/^Language:/)
      .locator("option");
    t.deepEqual(await languages.allTextContents(), [...Object.keys(runners), "gRPC"]);
    await page.locator("[id='chain.submitTransaction-body']").fill(body);
    const posted = await runSample(t, language, await sampleOf("chain.submitTransaction"));
    t.is(posted.stdout, `short and stout: ${body}`);
    t.deepEqual([posted.method, posted.url], ["POST", "/chain/transactions"]);
    t.is(posted.headers["content-type"], "application/json");

    await page.getByLabel("Line that the command prints").fill(line);
    await page.locator("[id='storage.getField-storageAddress']").fill("$(exit 9)");
    await page.locator("[id='storage.getField-field']").fill(`'"\\é`);
    const got = await runSample(t, language, await sampleOf("storage.getField"));
    t.deepEqual([got.method, got.url], ["GET", "/storage-program/%24(exit%209)/field/'%22%5C%C3%A9"]);
    t.is(got.headers["signature"], signature);
    // Without an identity and a body, a sample has nothing but the URL.
    await page.getByLabel("Line that the command prints").fill("");
    const plain = await sampleOf("info.getVersion");
    t.true(plain.split("\n").length <= 17 && !/headers|Header/.test(plain), plain);
    const { method, url, stdout } = await runSample(t, language, plain);
    t.deepEqual([method, url, stdout], ["GET", "/version", "short and stout:"]);
    t.deepEqual(errors, []);
  });
}

testUnless(whyNoBrowser ?? whyNoBuf)("a sample by gRPC reads from the node what its form names", async (t) => {
  const { address } = await storeProgram(t, node, "notes", '{"..":"an \\"odd\\" name","b":[1,2]}');
  const { page, errors } = await openLoaded(t, browser, `${node.rpcUrl}/docs#storage.getField`);
  const call = async (id: string, values: Readonly<Record<string, string>>): Promise<object> => {
    const operation = page.locator(`[id='${id}']`);
    for (const [name, value] of Object.entries(values)) {
      await page.locator(`[id='${id}-${name}']`).fill(value);
    }
    await operation.getByLabel(/^Language:/).selectOption("gRPC");
    const sample = (await operation.getByRole("region", { name: /^Code:/ }).textContent())!;
    t.true(sample.startsWith("buf curl --protocol grpc "), sample);
    const { stdout } = await run("sh", ["-c", sample.replace(/^buf /, `${toolProgram("buf")} `)]);
    return JSON.parse(stdout) as object;
  };
  t.like(await call("storage.getField", { storageAddress: address, field: ".." }), { value: '"an \\"odd\\" name"' });
  const item = { storageAddress: address, field: "b", index: "1", withLength: "true" };
  t.like(await call("storage.getFieldItem", item), { value: "2" });
  t.like(await call("chain.getBlock", { number: "1" }), { header: { number: "1" } });
  t.like(await call("health.getLiveness", { exclude: "main_loop" }), { report: { status: "PROBE_STATUS_OK" } });
  t.deepEqual(errors, []);
});

testBrowser("a sample names the parameters without a value, quotes the others, and is copied", async (t) => {
  const { page, errors } = await openLoaded(t, browser, `${node.rpcUrl}/docs#storage.getField`);
  const operation = page.locator("[id='storage.getField']");
  await operation
    .getByText(/^This example is/)
    .first()
    .waitFor();
  await operation.getByLabel(/^storageAddress/).fill("");
  await operation.getByLabel(/^field/).fill("a'&b");
  const code = operation.getByRole("region", { name: /^Code:/ });
  t.is(await code.textContent(), `curl '${node.rpcUrl}/storage-program/{storageAddress}/field/a'\\''%26b'`);
  t.is(await code.locator(".code-string").count(), 2);
  await operation.getByRole("button", { name: /^Copy code:/ }).click();
  await operation
    .getByRole("button", { name: /^Copy code:/ })
    .filter({ hasText: "Copied" })
    .waitFor();
  // The language applies to each sample.
  await operation.getByLabel(/^Language:/).selectOption("Python");
  const other = page.locator("[id='storage.searchPrograms']");
  await other.getByText("from urllib.request").waitFor();
  t.is(await other.getByLabel(/^Language:/).inputValue(), "Python");
  // A path segment that URLs resolve is sent by JSON-RPC.
  await operation.getByLabel(/^Language:/).selectOption("curl");
  await operation.getByLabel(/^field/).fill("..");
  t.regex((await code.textContent())!, /"method":"storage\.getField","params":\{"field":"\.\."\}/);
  t.deepEqual(errors, []);
});
