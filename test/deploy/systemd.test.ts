/** The systemd unit, checked against the options and by systemd-analyze. */
import test from "ava";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { configOf, defaults } from "../helpers/process/deployment.js";
import { ask } from "../helpers/wire/plain-client.js";
import { run } from "../helpers/process/programs.js";
import { startNodeProcess } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

const text = await readFile("deploy/systemd/gatehouse.service", "utf8");
const valuesOf = (key: string): string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value!);

test("each variable is an option, and the node writes only to its state directory", (t) => {
  const config = configOf(
    Object.fromEntries(valuesOf("Environment").map((pair) => pair.split("=") as [string, string])),
  );
  t.deepEqual(valuesOf("StateDirectory"), [config.dataDir.replace("/var/lib/", "")]);
  t.is(dirname(config.controlSocket), config.dataDir, "Commands look for the socket there.");
  t.true(Buffer.byteLength(config.controlSocket) <= 103);
  t.is(config.databaseUrl, `sqlite:${config.dataDir}/gatehouse.sqlite`);
  t.is(config.portDrift, "deny");
  t.deepEqual([config.rpcPort, config.omniPort], [defaults.rpcPort, defaults.omniPort]);
});

test("the unit starts the built program", (t) => {
  const [program, script, ...args] = valuesOf("ExecStart")[0]!.split(" ");
  t.is(program, "/usr/bin/node");
  t.true(existsSync(script!.replace("/opt/gatehouse/", "")));
  t.deepEqual(args, ["start"]);
});

const reload = valuesOf("ExecReload")[0]!;

testUnless(existsSync(reload.split(" ")[0]!) ? undefined : "there is no kill")(
  "a reload does not end the node",
  async (t) => {
    const node = await startNodeProcess(t, await temporaryDirectory(t), ["--log-level", "info"]);
    const [program, ...args] = reload.replace("$MAINPID", String(node.child.pid)).split(" ");
    await run(program!, args);
    await until(() => node.stderr().includes("to reload"));
    t.is((await ask(node.port, "/version")).status, 200);
  },
);

/** Writes a copy of the unit with an existing program, which systemd-analyze requires. */
async function installUnit(t: Teardown, unit: string): Promise<string> {
  const path = join(await temporaryDirectory(t), "gatehouse.service");
  await writeFile(path, unit.replace("ExecStart=/usr/bin/node", `ExecStart=${process.execPath}`));
  return path;
}

const testVerified = testUnless(whyNot("systemd-analyze", "--version"));

/** The messages of systemd-analyze about this unit. */
const problemsOf = async (path: string): Promise<string[]> => {
  const { stderr } = await run("systemd-analyze", ["verify", path]).catch(
    (error: unknown) => error as { stderr: string },
  );
  return stderr.split("\n").filter((line) => line.includes("gatehouse.service"));
};
testVerified("systemd-analyze verify accepts the unit, and rejects a wrong one", async (t) => {
  t.deepEqual(await problemsOf(await installUnit(t, text)), []);
  const wrong = await installUnit(t, text.replace("ProtectSystem=strict", "ProtectSystem=strictly"));
  t.regex((await problemsOf(wrong)).join("\n"), /strictly/);
});

// The threshold is in tenths. systemd rates up to 4.9 as "OK"; a unit without hardening has 9.6.
const securityFlags = ["--no-pager", "--offline=true", "--threshold=20"];
// Options are parsed in order, so --help is reached only if the options before it are known.
const testSecurity = testUnless(whyNot("systemd-analyze", ...securityFlags, "--help"));

testSecurity("systemd-analyze security rates the unit below 2.0", async (t) => {
  t.is(whyNot("systemd-analyze", "security", ...securityFlags, await installUnit(t, text)), undefined);
});
