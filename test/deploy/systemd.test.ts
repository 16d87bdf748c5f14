/** The unit, against the options and by systemd's own eyes. */
import test from "ava";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { configOf, defaults } from "../helpers/process/deployment.js";
import { ask } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/chain/programs.js";
import { startNodeProcess } from "../helpers/nodes/start-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const text = await readFile("deploy/systemd/gatehouse.service", "utf8");
const valuesOf = (key: string): string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value!);

test("each variable is an option, and what the node writes is in the directory that it is given", (t) => {
  const config = configOf(
    Object.fromEntries(valuesOf("Environment").map((pair) => pair.split("=") as [string, string])),
  );
  t.deepEqual(valuesOf("StateDirectory"), [config.dataDir.replace("/var/lib/", "")]);
  t.is(dirname(config.controlSocket), config.dataDir, "The commands look for it there.");
  t.true(Buffer.byteLength(config.controlSocket) <= 103);
  t.is(config.databaseUrl, `sqlite:${config.dataDir}/gatehouse.sqlite`);
  t.is(config.portDrift, "deny");
  t.deepEqual([config.rpcPort, config.omniPort], [defaults.rpcPort, defaults.omniPort]);
});

test("what it starts is what the build makes", (t) => {
  const [program, script, ...args] = valuesOf("ExecStart")[0]!.split(" ");
  t.is(program, "/usr/bin/node");
  t.true(existsSync(script!.replace("/opt/gatehouse/", "")));
  t.deepEqual(args, ["start"]);
});

const reload = valuesOf("ExecReload")[0]!;

testUnless(existsSync(reload.split(" ")[0]!) ? undefined : "there is no kill")(
  "to reload it ends nothing",
  async (t) => {
    const node = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "info"]);
    const [program, ...args] = reload.replace("$MAINPID", String(node.child.pid)).split(" ");
    await run(program!, args);
    await until(() => node.stderr().includes("to reload"));
    t.is((await ask(node.port, "/version")).status, 200);
  },
);

/** A copy whose program is there, as systemd wants it. */
async function installUnit(t: Teardown, unit: string): Promise<string> {
  const path = join(await temporaryDirectory(t), "gatehouse.service");
  await writeFile(path, unit.replace("ExecStart=/usr/bin/node", `ExecStart=${process.execPath}`));
  return path;
}

const testVerified = testUnless(whyNot("systemd-analyze", "--version"));

/** What systemd-analyze says of the unit, and of no other one. */
const complaints = async (path: string): Promise<string[]> => {
  const { stderr } = await run("systemd-analyze", ["verify", path]).catch(
    (error: unknown) => error as { stderr: string },
  );
  return stderr.split("\n").filter((line) => line.includes("gatehouse.service"));
};
testVerified("systemd-analyze verify finds nothing, and would", async (t) => {
  t.deepEqual(await complaints(await installUnit(t, text)), []);
  const wrong = await installUnit(t, text.replace("ProtectSystem=strict", "ProtectSystem=strictly"));
  t.regex((await complaints(wrong)).join("\n"), /strictly/);
});

// In tenths; what systemd calls "OK" ends at 4.9, and what is not hardened at all has 9.6.
const judge = ["--no-pager", "--offline=true", "--threshold=20"];
// The options are read in their order: help is only reached where those before it are known.
const testJudged = testUnless(whyNot("systemd-analyze", ...judge, "--help"));

testJudged("systemd-analyze security calls it well hardened", async (t) => {
  t.is(whyNot("systemd-analyze", "security", ...judge, await installUnit(t, text)), undefined);
});
