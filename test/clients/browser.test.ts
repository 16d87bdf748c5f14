/** The pages of examples/browser, built and opened in a real browser. */
import test, { type ExecutionContext } from "ava";
import { build } from "esbuild";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { ChainService } from "../../gen/gatehouse/chain/v1/chain_pb.js";
import { SubsystemStatus } from "../../gen/gatehouse/health/v1/health_pb.js";
import { launchBrowser, recordPage, whyNoBrowser } from "../helpers/process/browser.js";
import { createPublic, type Operation, signTransaction } from "../helpers/chain/transactions.js";
import { pruneBelow } from "../helpers/nodes/foreign.js";
import { fixedPort, startMember, startTestNode } from "../helpers/nodes/start-node.js";
import { writeAs } from "../helpers/chain/submit.js";
import { AccessMode } from "../../gen/gatehouse/storage/v1/storage_pb.js";
import { testKey } from "../helpers/chain/keys.js";
import { connectGrpc } from "../helpers/wire/grpc-client.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { packaged, run } from "../helpers/process/programs.js";

test("the page compiles", async (t) => {
  await t.notThrowsAsync(run(packaged("tsc"), ["-p", "examples/browser/tsconfig.json"]));
});

const testBrowser = testUnless(whyNoBrowser);

let browser: Browser;
testBrowser.before(async () => {
  browser = await launchBrowser();
});
testBrowser.after(() => browser.close());

/** Serves files over HTTP, and returns the address. */
async function serve(
  t: ExecutionContext,
  files: Readonly<Record<string, readonly [type: string, path: string]>>,
): Promise<string> {
  const server = createServer((request, response) => {
    const [type, path] = files[request.url ?? ""] ?? ["text/plain", "/dev/null"];
    void readFile(path).then((content) => response.writeHead(200, { "Content-Type": type }).end(content));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

testBrowser("calls the node, follows its health, and shows the reason of an error", async (t) => {
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
  const site = await serve(t, {
    "/": ["text/html", "examples/browser/index.html"],
    "/client.js": ["text/javascript", outfile],
  });
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  t.teardown(() => page.close());
  const { errors } = recordPage(page);
  await page.goto(site);
  await page.getByLabel("Node").fill(node.rpcUrl);
  await page.getByLabel("Owner").fill(alice.publicKey);
  await page.getByRole("button", { name: "Query" }).click();
  await page.getByRole("status").filter({ hasText: "Done." }).waitFor();
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
  // The page then shows the block, and the programs of its own key unless it has another one.
  t.regex((await page.locator("#head").textContent()) ?? "", /^2, /);
  await page.getByLabel("Owner").fill("");
  await page.getByRole("button", { name: "Query" }).click();
  await page.getByRole("status").filter({ hasText: "Done." }).waitFor();
  t.is(await page.locator("#programs").textContent(), "from a page");
  t.deepEqual(errors, []);
  await page.getByLabel("Owner").fill("nonsense");
  await page.getByRole("button", { name: "Query" }).click();
  await page.getByRole("status").filter({ hasText: "INVALID_REQUEST" }).waitFor();
});

testBrowser("shows each event once over reloads and restarts, and reports errors", async (t) => {
  const alice = testKey(90);
  const fixed = await fixedPort();
  const node = await startMember(t, fixed);
  const site = await serve(t, {
    "/": ["text/html", "examples/browser/events.html"],
    "/events.js": ["text/javascript", "examples/browser/events.js"],
  });
  const restart = () => startTestNode(t, { genesis: "genesis.json", ...fixed }, node.dir);
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  t.teardown(() => page.close());
  const status = (text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();
  const watch = async (button = "Watch"): Promise<void> => {
    await page.getByLabel("Node").fill(node.rpcUrl);
    await page.getByRole("button", { name: button }).click();
  };
  const shown = async (last: string): Promise<string[]> => {
    await page.getByRole("listitem").filter({ hasText: last }).waitFor();
    return (await page.getByRole("listitem").allTextContents()).reverse();
  };

  await page.goto(site);
  await watch();
  await status("Watching.");
  // The page stores a cursor once it has received the latest block, so no event is missed from here on.
  await page.waitForFunction("localStorage.length === 1");
  const hash1 = await writeAs(alice, node.port, 1, createPublic("a", "{}"));
  const [first, second, third] = await shown("1 block");
  t.is(first, `1.0 transaction ${hash1} included`);
  t.regex(second!, /^1\.1 program stor-[0-9a-f]{40} created $/);
  t.regex(third!, /^1 block 0x[0-9a-f]{64}, transactions: 1$/);

  await node.stop();
  await status("The connection is lost");
  let again = await restart();
  const secret: Operation = { case: "createProgram", value: { programName: "b", access: { mode: AccessMode.OWNER } } };
  const hash2 = await writeAs(alice, again.port, 2, secret);
  t.deepEqual((await shown("2 block")).slice(3, 4), [`2.0 transaction ${hash2} withheld`]);
  t.is((await page.getByRole("listitem").count()) - 3, 2);

  // The page is closed during a transaction, and reopened.
  await page.goto("about:blank");
  const hash3 = await writeAs(alice, again.port, 3, createPublic("c", "{}"));
  await page.goto(site);
  await watch();
  t.is((await shown("3 block"))[0], `3.0 transaction ${hash3} included`);

  await page.goto("about:blank");
  await writeAs(alice, again.port, 4, createPublic("d", "{}"));
  await again.stop();
  await pruneBelow(node, 5);
  again = await restart();
  await page.goto(site);
  await watch();
  await status("(PRUNED)");
  await watch("Start with the next event");
  await status("Watching.");
  await again.stop();
});
