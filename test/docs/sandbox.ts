/**
 * The environment of a reader before the first command: a clone of the repository after `npm ci`, and `gatehouse` on
 * the path. Its ports differ from those that documents show, so that documents can run concurrently.
 */
import { chmod, cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { delimiter, dirname, join, resolve } from "node:path";
import { run, toolProgram } from "../helpers/process/programs.js";
import { cleanEnvironment, shippedPath } from "../helpers/nodes/run-cli.js";
import { type Teardown, temporaryDirectory } from "../helpers/nodes/teardown.js";

export type Sandbox = Awaited<ReturnType<typeof createSandbox>>;

/** The ports that documents name: nodes on one machine, metrics, MCP, signaling, a page, a collector. */
const shownPorts = [...Array.from({ length: 20 }, (_, i) => 53_550 + i), 53_590, 3001, 3005, 8000, 4318];
/** Paths that commands may change. All others are links to the real clone. */
const copied = [".gitignore", "deploy", "docs", "examples", "gen", "proto"];
/** Paths that commands do not need. */
const omitted = [".git", "data"];

/** Programs that change the machine. */
const forbidden = ["apt", "apt-get", "createdb", "docker", "kubectl", "psql", "sudo", "systemctl", "yum"];

/** Returns true if a command names an absolute path, outside of the sandbox. `/CN=` is part of a certificate name. */
export function namesMachinePath(command: string): boolean {
  return /(?:^|[\s='":>(])\/(?!\/|dev\/null\b|CN=)\w/m.test(command);
}

/** Creates a clone of the repository, with an environment for commands. */
export async function createSandbox(t: Teardown) {
  const home = await temporaryDirectory(t);
  const [root, bin, scratch] = [join(home, "gatehouse"), join(home, "bin"), join(home, "scratch")];
  await Promise.all([root, bin, scratch].map((dir) => mkdir(dir)));
  for (const name of (await readdir(".")).filter((name) => !omitted.includes(name))) {
    await (copied.includes(name)
      ? cp(name, join(root, name), { recursive: true })
      : symlink(resolve(name), join(root, name)));
  }
  const realPorts = await freePorts(shownPorts.length);
  const toSandbox = replacer(shownPorts, realPorts);
  for (const path of await filesBelow(join(root, "examples"))) {
    await writeFile(path, toSandbox(await readFile(path, "utf8")));
  }
  await run("git", ["init", "-q"], { cwd: root });
  await run("git", ["add", "-A"], { cwd: root });
  const port = (shown: number): string => String(realPorts[shownPorts.indexOf(shown)]);
  await writeShims(bin, port(53_550));
  // In a terminal, curl shows no progress for small responses.
  await writeFile(join(home, ".curlrc"), "silent\nshow-error\n");
  return {
    root,
    scratch,
    env: cleanEnvironment({
      PATH: [bin, process.env["PATH"]].join(delimiter),
      HOME: home,
      PWD: root,
      GATEHOUSE_RPC_PORT: port(53_550),
      GATEHOUSE_OMNI_PORT: port(53_551),
      GATEHOUSE_METRICS_PORT: port(53_590),
      GATEHOUSE_MCP_PORT: port(3001),
      GATEHOUSE_NODE: `http://127.0.0.1:${port(53_550)}`,
      // Another test may have chosen the same free ports.
      GATEHOUSE_PORT_DRIFT: "deny",
      NO_PROXY: "127.0.0.1,localhost",
      no_proxy: "127.0.0.1,localhost",
      PYTHONUNBUFFERED: "1",
    }),
    /** Replaces the ports of the document by those of the sandbox; `toDocument` does the reverse. */
    toSandbox,
    toDocument: replacer(realPorts, shownPorts),
    /** Returns the lines of `git status` for new and changed files. */
    async changedFiles(): Promise<string[]> {
      // The first column is the index, from `git add` above. The second one is the work tree.
      const { stdout } = await run("git", ["status", "--porcelain", "--untracked-files=all"], { cwd: root });
      return stdout.split("\n").filter((line) => /^.\S/.test(line));
    },
  };
}

/** Writes stubs for commands that would compile, install or search the program. */
async function writeShims(bin: string, firstPort: string): Promise<void> {
  const { scripts } = JSON.parse(await readFile("package.json", "utf8")) as { scripts: Record<string, string> };
  const node = `exec '${process.execPath}'`;
  const shims: Record<string, string> = {
    gatehouse: `[ "$1" = devnet ] && set -- "$@" --rpc-port ${firstPort}\n${node} '${shippedPath}' "$@"`,
    npm: [
      'case "$*" in',
      `  ci | "run build") ;;`,
      `  start) exec ${scripts["start"]} --rpc-port ${firstPort} ;;`,
      `  "run bench -- "* | "run campaign -- "*) suite=$2; shift 3; ${node} "dist/tools/$suite/main.js" "$@" ;;`,
      `  *) echo "npm $* is not allowed in a test" >&2; exit 1 ;;`,
      "esac",
    ].join("\n"),
    // The name is that of a package or of its program.
    npx: [
      '[ "$1" = -y ] && shift',
      "program=${1##*/}",
      "shift",
      `PATH='${resolve("node_modules/.bin")}:${dirname(toolProgram("npx"))}':"$PATH"`,
      'exec "$program" "$@"',
    ].join("\n"),
  };
  for (const name of forbidden) {
    shims[name] = `echo "${name} is not allowed in a test" >&2\nexit 1`;
  }
  for (const [name, text] of Object.entries(shims)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(bin, name), 0o755);
  }
}

function replacer(from: readonly number[], to: readonly number[]): (text: string) => string {
  const any = new RegExp(`(?<![\\w.])(?:${from.join("|")})(?![\\w]|\\.\\d)`, "g");
  return (text) => text.replace(any, (port) => String(to[from.indexOf(Number(port))]));
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Returns free consecutive ports, below the range that systems assign. */
async function freePorts(count: number): Promise<number[]> {
  for (;;) {
    const first = 20_000 + Math.floor((Math.random() * 10_000) / count) * count;
    const ports = Array.from({ length: count }, (_, i) => first + i);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) {
      return ports;
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, () => server.close(() => resolve(true)));
  });
}
