/** The page of examples/browser, built and opened in a real browser. */
import test from "ava";
import { build } from "esbuild";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { launchBrowser, listen, whyNoBrowser } from "../helpers/browser.js";
import { createPublic, signTransaction } from "../helpers/transactions.js";
import { startMember } from "../helpers/start-member.js";
import { testKey } from "../helpers/keys.js";
import { connectGrpc } from "../helpers/grpc-client.js";
import { temporaryDirectory } from "../helpers/teardown.js";
import { testUnless } from "../helpers/when.js";
import { packaged, run } from "../helpers/programs.js";

test("the page has the types that it says", async (t) => {
  await t.notThrowsAsync(run(packaged("tsc"), ["-p", "examples/browser/tsconfig.json"]));
});

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

testBrowser("it calls the node, follows its health, and shows the reason of a failure", async (t) => {
  const node = await startMember(t);
  const client = connectGrpc(node.port);
  t.teardown(() => client.close());
  const alice = testKey(90);
  const transaction = signTransaction(alice, 1, createPublic("from the page", "{}"));
  await client.call(ChainService.method.submitTransaction, { transaction });

  const outfile = join(await temporaryDirectory(t), "client.js");
  await build({
    entryPoints: ["examples/browser/client.ts"],
    bundle: true,
    format: "esm",
    outfile,
    logLevel: "silent",
  });
  const files: Record<string, [string, string]> = {
    "/": ["text/html", "examples/browser/index.html"],
    "/client.js": ["text/javascript", outfile],
  };
  const server = createServer((request, response) => {
    const [type, path] = files[request.url ?? ""] ?? ["text/plain", "/dev/null"];
    void readFile(path).then((content) => response.writeHead(200, { "Content-Type": type }).end(content));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });

  const page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  t.teardown(() => page.close());
  const { complaints } = listen(page);
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  await page.getByLabel("Node").fill(node.rpcUrl);
  await page.getByLabel("Owner").fill(alice.publicKey);
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("status").filter({ hasText: "Answered." }).waitFor();
  t.is(await page.locator("#version").textContent(), "0.2.0");
  t.regex((await page.locator("#head").textContent()) ?? "", /^1, 0x[0-9a-f]{64}$/);
  t.is(await page.locator("#programs").textContent(), "from the page");
  await page.locator("#health").filter({ hasText: "ok" }).waitFor();
  node.subsystems.set("l2ps", { status: SubsystemStatus.FAILED, error: { message: "gone" } });
  await page.locator("#health").filter({ hasText: "degraded" }).waitFor();
  await page.getByRole("button", { name: "Write" }).click();
  await page
    .getByRole("status")
    .filter({ hasText: /^In block \d+: \{"hello":"world"\}$/ })
    .waitFor();
  t.deepEqual(complaints, []);
  await page.getByLabel("Owner").fill("nonsense");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByRole("status").filter({ hasText: "INVALID_REQUEST" }).waitFor();
});
