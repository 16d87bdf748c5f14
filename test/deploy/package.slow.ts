/** The package of `npm pack`: installed as deploy/README.md says, and by npm into an empty folder. */
import test from "ava";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { linkProductionPackages } from "../helpers/process/deployment.js";
import { ask, askJson } from "../helpers/wire/plain-client.js";
import { packaged, run } from "../helpers/process/programs.js";
import { cleanEnvironment, noRecover, runCli, startNodeProcess } from "../helpers/nodes/run-cli.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { until } from "../helpers/nodes/until.js";
import { testUnless } from "../helpers/nodes/when.js";

const { version } = JSON.parse(await readFile("package.json", "utf8")) as { version: string };
const work = await mkdtemp(join(tmpdir(), "gatehouse-test-"));
const readme = await readFile("deploy/README.md", "utf8");

/** Error codes of npm if the registry cannot be reached. */
const unreachable = /E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH)\b|ERR_SOCKET_TIMEOUT/;

const binding = "node_modules/sqlite3/build/Release/node_sqlite3.node";

interface Installed {
  readonly dir: string;
  /** Warnings of npm. */
  readonly stderr: string;
}

/**
 * Installs the package and others into an empty folder. Returns a reason if the registry cannot be reached.
 *
 * @param flags Flags and names of other packages.
 */
async function install(name: string, ...flags: readonly string[]): Promise<Installed | string> {
  const dir = join(work, name);
  await mkdir(dir);
  try {
    const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...flags, tarball];
    return { dir, stderr: (await run("npm", args, { cwd: dir })).stderr };
  } catch (error) {
    const [code] = unreachable.exec((error as { stderr: string }).stderr) ?? [];
    if (code === undefined) {
      throw error;
    }
    return `the package registry cannot be reached: ${code}`;
  }
}
const tarball = join(work, `gatehouse-${version}.tgz`);
// The build is already in dist.
await run("npm", ["pack", "--ignore-scripts", "--silent", resolve(".")], { cwd: work });
const connectPackages = ["connect", "connect-express", "connect-node"].map((name) => `@connectrpc/${name}@2.1.2`);
// The only script compiles SQLite, which takes two minutes. Its result is copied from this tree.
const installed = await install("node", "--ignore-scripts", "sqlite3", "express", ...connectPackages);
if (typeof installed !== "string") {
  await cp(binding, join(installed.dir, binding));
}
// AVA requires that tests are declared after all asynchronous setup.
fileTeardown().teardown(() => rm(work, { recursive: true, force: true }));
const testInstalled = testUnless(typeof installed === "string" ? installed : undefined);

/** Runs the commands of deploy/README.md below another root, with stubs for programs that change the machine. */
async function followReadme(url: string): Promise<string> {
  const [, script = ""] = /package\.slow\.ts follows it[^]*?```sh\n([^]*?)```/.exec(readme) ?? [];
  const root = join(work, "root");
  const [clone, programs] = [join(root, "clone"), join(root, "programs")];
  await mkdir(programs, { recursive: true });
  await linkProductionPackages(clone);
  await symlink(resolve("deploy"), join(clone, "deploy"));
  const stubs = {
    npm: `case "$1" in ci|prune) ;; pack) cp ${tarball} . ;; *) exit 64 ;; esac`,
    systemctl: `echo "$@" >> ${root}/systemctl`,
    // The test starts the node of the unit.
    curl: ":",
  };
  for (const [program, text] of Object.entries(stubs)) {
    await writeFile(join(programs, program), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
  const adapted = script
    .replaceAll(/ \/(opt|etc|var)\b/g, ` ${root}/$1`)
    .replaceAll("http://node.example.org:53550", `${url} --yes`);
  const path = [programs, dirname(process.execPath), process.env["PATH"]].join(":");
  await run("sh", ["-euc", adapted], { cwd: clone, env: cleanEnvironment({ PATH: path }) as NodeJS.ProcessEnv });
  return root;
}

test("all files state one version, the changelog has it, and no manifest names a missing page", async (t) => {
  const read = async (file: string) => JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  const lock = (await read("package-lock.json")) as { version: string; packages: Record<string, { version: string }> };
  t.is(lock.version, version);
  t.is(lock.packages[""]!.version, version);
  for (const file of ["package.json", "client/package.json"]) {
    const manifest = await read(file);
    t.is(manifest["version"], version, file);
    // The project has no page yet. SECURITY.md says how to report without one.
    t.deepEqual(
      ["repository", "bugs", "homepage"].filter((field) => field in manifest),
      [],
      file,
    );
  }
  t.regex(await readFile("CHANGELOG.md", "utf8"), new RegExp(`^## ${version} - \\d{4}-\\d\\d-\\d\\d$`, "m"));
  const text = [readme, await readFile("deploy/Dockerfile", "utf8")].join("\n");
  const named = [...text.matchAll(/gatehouse[:-](\d+\.\d+\.\d+)\b/g)].map(([, number]) => number);
  t.true(named.length >= 5);
  t.deepEqual([...new Set(named)], [version]);
});

test("the files that deploy/README.md installs for systemd suffice for a node, which joins its network", async (t) => {
  const dir = await temporaryDirectory(t);
  t.is((await runCli(["init", "--data-dir", dir, "--followers", "open"])).code, 0);
  const first = await startNodeProcess(t, dir, [noRecover, "--allow-private-peers"]);

  const root = await followReadme(first.ready.rpc);
  const unit = await readFile(join(root, "etc/systemd/system/gatehouse.service"), "utf8");
  t.is(unit, await readFile("deploy/systemd/gatehouse.service", "utf8"));
  t.is(await readFile(join(root, "systemctl"), "utf8"), "daemon-reload\nenable --now gatehouse\n");
  const [, script = ""] = /^ExecStart=\S+ (\S+) start$/m.exec(unit) ?? [];
  const [, data = ""] = /^Environment=GATEHOUSE_DATA_DIR=(.*)$/m.exec(unit) ?? [];
  const flags = [noRecover, "--allow-private-peers"];
  const second = await startNodeProcess(t, join(root, data), flags, [], join(root, script));
  await until(async () => (await ask(second.port, "/readyz?verbose")).status === 200);
  for (const path of ["/version", "/explore", "/status", "/docs", "/openapi.json"]) {
    // A busy node rejects requests while it builds the documents.
    await until(async () => (await ask(second.port, path)).status === 200);
  }
  // The descriptions are from a data file, which must be installed as well.
  const documents = await Promise.all([first, second].map(({ port }) => askJson(port, "/openapi.json")));
  t.regex(JSON.stringify(documents[0]!["paths"]), /"description":/);
  t.deepEqual(documents[1]!["paths"], documents[0]!["paths"]);
  const heads = await Promise.all([first, second].map(({ port }) => askJson(port, "/chain/head")));
  t.is(heads[1]!["genesisHash"], heads[0]!["genesisHash"]);
});

testInstalled("the package and its optional packages install into an empty folder, and start a network", async (t) => {
  const { dir } = installed as Installed;
  const bin = join(dir, "node_modules/.bin/gatehouse");
  const gatehouse = async (...args: readonly string[]) =>
    (await run(bin, args, { cwd: dir, env: cleanEnvironment() as NodeJS.ProcessEnv })).stdout;
  t.is(await gatehouse("--version"), `${version}\n`);
  t.regex(await gatehouse("init", "--data-dir", "mine"), /^network {4}0x[0-9a-f]{64}$/m);
  const node = await startNodeProcess(t, join(dir, "mine"), [noRecover], [], bin);
  t.is((await ask(node.port, "/readyz")).text, '{"status":"ok","checks":[]}');
  t.is((await ask(node.port, "/version")).text, JSON.stringify(version));
  for (const path of ["/explore", "/status", "/docs", "/openapi.json"]) {
    await until(async () => (await ask(node.port, path)).status === 200);
  }

  // The exports of the package, imported by name.
  await writeFile(
    join(dir, "application.mjs"),
    `import { startGatehouse } from "gatehouse/express";
     const settings = { "data-dir": "another", "rpc-port": 0, "omni-port": 0, "log-level": "silent" };
     const gatehouse = await startGatehouse(settings);
     console.log(await (await fetch(gatehouse.rpcUrl + "/version")).json(), typeof gatehouse.router);
     await gatehouse.stop();
     process.exit();`,
  );
  const { stdout } = await run(process.execPath, ["application.mjs"], { cwd: dir });
  t.is(stdout, `${version} function\n`);
});

const routerApplication = `
  import type { ConnectRouter } from "@connectrpc/connect";
  import express from "express";
  import type { AddressInfo } from "node:net";
  import { transcode } from "gatehouse/transcoding";
  import { InfoService } from "./gen/gatehouse/info/v1/info_pb.js";

  const routes = (router: ConnectRouter): void => {
    router.service(InfoService, { getVersion: () => ({ version: "mine" }) });
  };
  const server = express().use(transcode({ routes })).listen(0, "127.0.0.1", async () => {
    const { port } = server.address() as AddressInfo;
    console.log(await (await fetch("http://127.0.0.1:" + port + "/version")).text());
    server.close();
  });
`;

for (const version of ["2.1.2", "latest"]) {
  testInstalled(`its router works alone, with the types of Connect ${version}, and nothing is compiled`, async (t) => {
    const packages = [`@connectrpc/connect@${version}`, "express", "@types/node@20"];
    const { dir, stderr } = (await install(`connect-${version}`, ...packages)) as Installed;
    t.notRegex(stderr, /gatehouse@|sqlite3|ERESOLVE|peer/);
    const has = (name: string): boolean => existsSync(join(dir, "node_modules", name));
    t.true(has("gatehouse"));
    for (const name of [
      "sqlite3",
      "tlsn-wasm",
      "pg",
      "@opentelemetry/resources",
      "gatehouse/node_modules/@connectrpc",
    ]) {
      t.false(has(name), name);
    }

    await cp("gen", join(dir, "gen"), { recursive: true });
    await writeFile(join(dir, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(dir, "application.ts"), routerApplication);
    const compilerOptions = { strict: true, module: "nodenext", target: "es2023", types: ["node"], skipLibCheck: true };
    await writeFile(join(dir, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["application.ts"] }));
    await t.notThrowsAsync(run(resolve(packaged("tsc")), ["-p", "."], { cwd: dir }));
    t.is((await run(process.execPath, ["application.js"], { cwd: dir })).stdout, '"mine"\n');

    // A node says which package it needs.
    const bin = join(dir, "node_modules/.bin/gatehouse");
    const env = cleanEnvironment() as NodeJS.ProcessEnv;
    await run(bin, ["init", "--data-dir", "mine"], { cwd: dir, env });
    const start = ["start", "--data-dir", "mine", "--rpc-port", "0", "--omni-port", "0"];
    await t.throwsAsync(run(bin, start, { cwd: dir, env }), {
      message: /SQLite needs a package that is not installed; run: npm install sqlite3 /,
    });
  });
}
