/** `gatehouse devnet`: its suggested commands, its table, and its end. */
import test from "ava";
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../helpers/process/programs.js";
import { cleanEnvironment, cliPath, runCli, startCli } from "../../helpers/nodes/run-cli.js";
import { temporaryDirectory } from "../../helpers/nodes/teardown.js";
import { eventually, until } from "../../helpers/nodes/until.js";
import { askJson } from "../../helpers/wire/plain-client.js";
import { testUnless, whyNot } from "../../helpers/nodes/when.js";

test("every command that devnet suggests succeeds, and signed ones do not expire", async (t) => {
  // Avoid the ports of other tests. The nodes use the next free ports.
  const args = ["devnet", "--rpc-port", String(31_000 + (process.pid % 1_000))];
  const child = spawn(process.execPath, [cliPath, ...args], { env: cleanEnvironment() });
  t.teardown(() => child.kill("SIGINT"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  await eventually("the network is up", () => Promise.resolve(text.includes("Ctrl-C stops the network.")));
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /\bcurl '/.test(line));
  t.true(lines.length >= 18, text);
  const signed = lines.filter((line) => line.includes("identity headers"));
  t.is(signed.length, 2);
  for (const line of lines) {
    t.notRegex(line, /signature/, "a printed signature would expire");
    const { stdout } = await run("bash", ["-c", line.replace("curl", "curl --silent --fail-with-body")]);
    t.notThrows(() => JSON.parse(stdout) as unknown, line);
  }
});

testUnless(whyNot("script", "--version"))("on a terminal, devnet redraws its table at each block", async (t) => {
  const command = [process.execPath, cliPath, "devnet", "--rpc-port", String(30_000 + (process.pid % 1_000))].join(" ");
  const child = spawn("script", ["-qefc", command, "/dev/null"], { env: { ...cleanEnvironment(), TERM: "xterm" } });
  t.teardown(() => child.kill("SIGINT"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const row = /\u001b\[2K {2}1 +(http:\S+) +\S+ +\S+ +(\d+) +\S*1 of 1/g;
  const drawnRows = () => [...text.matchAll(row)].map(([, url, block]) => ({ url: url!, block: Number(block) }));
  await eventually("the table is there", () => Promise.resolve(drawnRows().length > 0));
  const { url, block } = drawnRows()[0]!;
  const key = join(await temporaryDirectory(t), "key");
  t.is((await runCli(["keygen", "--out", key])).code, 0);
  const { code, stderr } = await runCli(["zk", "commit", "--node", url, "--key", key, `0x${"1".padStart(64, "0")}`]);
  t.is(code, 0, stderr);
  await eventually("the block is drawn", () => Promise.resolve(drawnRows().at(-1)!.block === block + 1));
  // The new table overwrites the previous one.
  t.true(text.includes("\u001b[4A"));
});

test("two nodes of a devnet discover each other, and SIGINT stops them with code 0", async (t) => {
  const { child, port, ended, stdout, stderr } = await startCli(t, ["devnet", "--rpc-port", "54550"]);
  await until(() => stdout().includes("network-ready"));
  const peers = () =>
    askJson<{ status: { online: boolean; ready: boolean }; sync: { block: number }; identity: string }[]>(
      port,
      "/peerlist",
    );
  // Wait until the first node knows that the other one has the block of the samples.
  await until(async () => (await peers()).every(({ status, sync }) => status.ready && sync.block >= 1));
  const [peer, ...others] = await peers();
  t.deepEqual(others, []);
  t.true(peer!.status.online);
  t.regex(peer!.identity, /^0x[0-9a-f]{64}$/);
  t.like(await askJson(port, "/health"), { status: "ok" });
  child.kill("SIGINT");
  t.is(await ended, 0);
  t.is(stderr(), "");
});

test("SIGHUP stops a devnet like Ctrl-C, and its temporary directory is deleted", async (t) => {
  const tmp = await temporaryDirectory(t);
  const port = String(32_000 + (process.pid % 1_000));
  const { child, ended } = await startCli(t, ["devnet", "--nodes", "1", "--rpc-port", port], { TMPDIR: tmp });
  t.regex((await readdir(tmp)).join(), /^gatehouse-devnet-\w+$/);
  child.kill("SIGHUP");
  t.is(await ended, 0);
  t.deepEqual(await readdir(tmp), []);
});
