/** The packed client: installed with its peers into an empty folder, type-checked, run, and bundled. */
import test from "ava";
import { build } from "esbuild";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { run } from "../helpers/process/programs.js";
import { startMember, type TestNode } from "../helpers/nodes/start-node.js";
import { fileTeardown, temporaryDirectory } from "../helpers/nodes/teardown.js";
import { version } from "../../src/base/version.js";

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly gypfile?: boolean;
}

const readManifest = async (dir: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(dir, "package.json"), "utf8")) as Manifest;

let member: TestNode;
let home: string;
let installed: string;
/** Directories of the client and its dependencies. */
let packages: string[];
const file = fileTeardown();

// Installs as `npm install` does, but from local packages, so that the test needs no registry.
test.before(async () => {
  member = await startMember(file);
  home = await temporaryDirectory(file);
  await run("npm", ["pack", "--workspace", "client", "--ignore-scripts", "--pack-destination", home]);
  const [archive] = await readdir(home);
  const modules = join(home, "node_modules");
  installed = join(modules, "gatehouse-client");
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(home, archive!), "-C", installed, "--strip-components", "1"]);
  const { dependencies = {}, peerDependencies = {} } = await readManifest(installed);
  for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(resolve("node_modules", name), join(modules, name));
  }
  packages = [installed, ...Object.keys(dependencies).map((name) => resolve("node_modules", name))];
});

/** Paths and sizes of all files below a directory. */
async function filesOf(dir: string): Promise<readonly { readonly path: string; readonly bytes: number }[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return await Promise.all(files.map(async (path) => ({ path, bytes: (await stat(path)).size })));
}

test("has under 2 MB with its dependencies, no native code and no install scripts", async (t) => {
  const files = (await Promise.all(packages.map(filesOf))).flat();
  const bytes = files.reduce((sum, entry) => sum + entry.bytes, 0);
  t.log(`${files.length} files, ${Math.round(bytes / 1000)} kB`);
  t.true(bytes < 2_000_000, `${bytes} bytes`);
  t.deepEqual(
    files.filter(({ path }) => /\.(node|gyp|wasm|so|dll)$/.test(path)),
    [],
  );
  for (const dir of packages) {
    const { scripts = {}, gypfile } = await readManifest(dir);
    t.deepEqual(
      ["preinstall", "install", "postinstall"].filter((name) => name in scripts),
      [],
      dir,
    );
    t.is(gypfile, undefined);
  }
  // Messages between nodes and of the operator are not for clients.
  const contract = files
    .map(({ path }) => /\/gen\/gatehouse\/(\w+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined);
  t.deepEqual([...new Set(contract)].sort(), [
    "annotations",
    "attestation",
    "chain",
    "errors",
    "event",
    "health",
    "info",
    "search",
    "state",
    "storage",
    "zk",
  ]);
});

test("has the version, Node.js range and license of the node", async (t) => {
  const node = await readManifest(".");
  const client = await readManifest(installed);
  t.is(client.version, node.version);
  t.deepEqual(client.engines, node.engines);
  t.is(await readFile(join(installed, "LICENSE"), "utf8"), await readFile("LICENSE", "utf8"));
});

test("the program in the README writes, waits and reads, and ends by itself", async (t) => {
  const [, program = ""] =
    /```js\n(import \{ appendItem[^]*?)```/.exec(await readFile("client/README.md", "utf8")) ?? [];
  t.true(program.split("\n").length <= 31);
  await writeFile(join(home, "notes.mjs"), program);
  const { stdout, stderr } = await run(process.execPath, ["notes.mjs", member.rpcUrl], { cwd: home, timeout: 60_000 });
  t.regex(stdout, /^in block \d+: \{ title: 'Hello', tags: \[ 'first' \] \}\n$/);
  t.is(stderr, "");
});

test("a process with a stream ends when its client is closed", async (t) => {
  const program = `
    import { createGatehouse } from "gatehouse-client";
    const node = createGatehouse(process.argv[2]);
    void node.waitFor("0x${"1".repeat(64)}").catch((error) => console.log(error.reason));
    for await (const { version } of node.watchHealth()) {
      console.log(version);
      // fetch of Node.js can lose its abort signals in a garbage collection.
      setTimeout(gc, 20);
      setTimeout(gc, 40);
      setTimeout(() => node.close(), 60);
    }
    `;
  await writeFile(join(home, "watch.mjs"), program);
  const { stdout } = await run(process.execPath, ["--expose-gc", "watch.mjs", member.rpcUrl], {
    cwd: home,
    timeout: 60_000,
  });
  t.deepEqual([...new Set(stdout.split("\n"))].sort(), ["", version, "CLOSED"]);
});

const typed = `
import { AccessMode } from "gatehouse-client/contract/storage/v1/storage.js";
import { createGatehouse, createProgram, type FailureReason, GatehouseError, type Signer } from "gatehouse-client";

declare const signer: Signer;
export async function write(): Promise<bigint> {
  const node = createGatehouse("http://127.0.0.1:53550", { signer, retry: { attempts: 2 } });
  const { storageAddress, hash } = await node.submit(createProgram({ name: "a", data: [1, { b: null }] }));
  const isPublic = (await node.storage.getProgram({ storageAddress: storageAddress.trim() })).acl?.mode === AccessMode.PUBLIC;
  return isPublic ? 0n : (await node.waitFor(hash)).blockNumber;
}
export function explain(error: GatehouseError): string {
  const known: FailureReason = "RATE_LIMITED";
  // @ts-expect-error This reason does not exist.
  const wrong = error.reason === "NOT_THERE";
  switch (error.reason) {
    case "NOT_FOUND":
    case "REJECTED":
    case known:
      return \`\${error.message} \${error.retryAfterMs ?? wrong}\`;
    default:
      return error.code ?? error.reason;
  }
}
// @ts-expect-error A function is not JSON.
export const nonsense = createProgram({ name: "a", data: () => 1 });
`;

test("a program without the types of Node.js compiles against its types in strict mode", async (t) => {
  await writeFile(join(home, "typed.ts"), typed);
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noEmit"];
  const tsc = [resolve("node_modules/typescript/bin/tsc"), ...strict, "--target", "ES2022"];
  const compiled = run(process.execPath, [...tsc, "--module", "nodenext", "--lib", "ES2022,DOM", "typed.ts"], {
    cwd: home,
  });
  await t.notThrowsAsync(
    compiled.catch((error: unknown) => Promise.reject(new Error((error as { stdout: string }).stdout))),
  );
});

test("a bundle for browsers needs no Node.js modules", async (t) => {
  const entry = join(home, "page.js");
  await writeFile(entry, 'export * from "gatehouse-client";');
  const { outputFiles, warnings } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    platform: "browser",
    minify: true,
    write: false,
    logLevel: "silent",
  });
  const { contents } = outputFiles[0]!;
  t.deepEqual(warnings, []);
  t.log(`${Math.round(contents.length / 1000)} kB, ${Math.round(gzipSync(contents).length / 1000)} kB compressed`);
  t.true(contents.length < 250_000);
});
