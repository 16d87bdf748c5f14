/** The Rust example, built from packages of Debian. It runs only with TEST_RUST=1, because compiling takes a minute. */
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type ForeignProgram, startProgram, testExamples } from "../helpers/nodes/foreign.js";
import { testKey, writeKey } from "../helpers/chain/keys.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { run as runProgram } from "../helpers/process/programs.js";
import { cleanEnvironment } from "../helpers/nodes/run-cli.js";
import { startMember } from "../helpers/nodes/start-node.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { isInstalled, succeeds, testUnless, whyNotInstalled } from "../helpers/nodes/when.js";

const crates = "/usr/share/cargo/registry";
const cargo = "/usr/bin/cargo";
const packages = ["prost", "prost-build", "prost-types", "openssl", "serde_json", "hex"];
const testRust = testUnless(
  process.env["TEST_RUST"] === undefined
    ? "compiling takes a minute; set TEST_RUST=1"
    : whyNotInstalled({
        cargo: succeeds(cargo, "--version"),
        "protobuf-compiler": isInstalled("protoc"),
        ...Object.fromEntries(
          packages.map((name) => [
            `librust-${name.replace("_", "-")}-dev`,
            succeeds("sh", "-c", `ls -d ${crates}/${name}-[0-9]*`),
          ]),
        ),
      }),
);

let out = "";

testRust.before(async (t) => {
  t.timeout(10 * 60_000);
  out = await mkdtemp(join(tmpdir(), "gatehouse-rust-"));
  await cp("examples/rust", out, { recursive: true });
  await mkdir(join(out, ".cargo"));
  const sources = `[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "${crates}"\n`;
  await writeFile(join(out, ".cargo/config.toml"), sources);
  const variables = { GATEHOUSE: resolve("."), CARGO_HOME: join(out, "home"), RUSTC: "/usr/bin/rustc" };
  await runProgram(cargo, ["build", "--offline"], { cwd: out, env: cleanEnvironment(variables) });
});

testRust.after(() => rm(out, { recursive: true, force: true }));

const run = (t: Teardown, ...args: readonly string[]): ForeignProgram =>
  startProgram(t, join(out, "target/debug/gatehouse-client"), args);

testExamples(testRust, "Rust", ["vectors"], run);

testRust("a node accepts the transaction of the Rust example", async (t) => {
  const { port } = await startMember(t);
  const keyFile = join(out, "alice.key");
  await writeKey(keyFile, testKey(2));
  const { genesisHash } = await askJson<{ genesisHash: string }>(port, "/chain/head");
  const { code, stdout, stderr } = await run(t, "transaction", genesisHash, keyFile, "notes", "[]").ended;
  t.is(code, 0, stderr);
  const { status, text } = await ask(port, "/chain/transactions", { method: "POST", body: stdout });
  t.is(status, 200, text);
});
