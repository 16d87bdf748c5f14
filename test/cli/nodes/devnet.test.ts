/** What a devnet tells its reader to try. */
import test from "ava";
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { run } from "../../helpers/programs.js";
import { cleanEnvironment, cliPath } from "../../helpers/run-cli.js";
import { startCli } from "../../helpers/start-cli.js";
import { temporaryDirectory } from "../../helpers/teardown.js";
import { eventually } from "../../helpers/until.js";

test("every line that devnet offers is answered, those that sign at any time", async (t) => {
  // Far from the ports that other tests ask for; it takes the next ones that are free.
  const args = ["devnet", "--rpc-port", String(31_000 + (process.pid % 1_000))];
  const child = spawn(process.execPath, [cliPath, ...args], { env: cleanEnvironment() });
  t.teardown(() => child.kill("SIGINT"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more: string) => (text += more));
  await eventually("the network is up", () => Promise.resolve(text.includes("Ctrl-C stops the network.")));
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /\bcurl '/.test(line));
  t.true(lines.length >= 18, text);
  const signed = lines.filter((line) => line.includes("identity headers"));
  t.is(signed.length, 2);
  for (const line of lines) {
    t.notRegex(line, /signature/, "a signature that is printed is soon too old");
    const { stdout } = await run("bash", ["-c", line.replace("curl", "curl --silent --fail-with-body")]);
    t.notThrows(() => JSON.parse(stdout) as unknown, line);
  }
});

test("SIGHUP ends a devnet as Ctrl-C does, and leaves nothing behind", async (t) => {
  const tmp = await temporaryDirectory(t);
  const port = String(32_000 + (process.pid % 1_000));
  const { child, ended } = await startCli(t, ["devnet", "--nodes", "1", "--rpc-port", port], { TMPDIR: tmp });
  t.regex((await readdir(tmp)).join(), /^gatehouse-devnet-\w+$/);
  child.kill("SIGHUP");
  t.is(await ended, 0);
  t.deepEqual(await readdir(tmp), []);
});
