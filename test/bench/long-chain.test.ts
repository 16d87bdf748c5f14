/** The suite longchain of the benchmark, with a short chain that has all of its parts. */
import test from "ava";
import { join } from "node:path";
import { createLongChain, measureViews } from "../../tools/bench/reads/long-chain.js";
import { startGatehouse } from "../../tools/bench/servers/server-process.js";
import { runCli } from "../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../helpers/nodes/teardown.js";
import { testUnless } from "../helpers/nodes/when.js";
import { launchBrowser, whyNoBrowser } from "../helpers/process/browser.js";

test("all checks of stored data accept a long chain", async (t) => {
  const dir = join(await temporaryDirectory(t), "node");
  await createLongChain(dir, 300);
  const { code, stdout } = await runCli(["verify-data", "--data-dir", dir, "--json"]);
  t.is(code, 0, stdout);
  const { ok, blocks, programs, senders } = JSON.parse(stdout) as Record<string, unknown>;
  t.deepEqual({ ok, blocks, programs, senders }, { ok: true, blocks: 300, programs: 30, senders: 1 });
});

testUnless(whyNoBrowser)("opens each view of the explorer on a long chain, without errors", async (t) => {
  t.timeout(300_000, "a browser and a node start slowly on a busy machine");
  const chain = await createLongChain(join(await temporaryDirectory(t), "node"), 300);
  const node = await startGatehouse(chain.flags);
  t.teardown(() => node.stop());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const rows = await measureViews(browser, node, chain, 1, (what) => t.log(what));
  t.deepEqual(
    rows.map(({ name }) => name),
    [
      ...["overview", "list of blocks", "its next page", "first block", "a block", "list of transactions"],
      ...["search by name", "owner"],
    ],
  );
});
