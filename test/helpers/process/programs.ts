/**
 * Programs of this machine, of npm packages, and of tools/packages. Tests that use the last are skipped until `npm run
 * tools` has installed them.
 */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

/** Runs a program. Rejects with its output if it fails. */
export const run = promisify(execFile);

/** Returns the path of a program in an npm package, because npx is slow. */
export function packaged(name: string): string {
  return `node_modules/.bin/${name}`;
}

/** Returns the reason that a command fails here; undefined if it succeeds. */
export function whyNot(program: string, ...args: readonly string[]): string | undefined {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8", timeout: 20_000 });
  if (error !== undefined) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? `${program} is not installed` : error.message;
  }
  return status === 0 ? undefined : `${program}: ${stderr.trim().split("\n").at(-1)}`;
}

/** Returns a message with the missing system packages; undefined if none is missing. */
export function whyNotInstalled(packages: Readonly<Record<string, boolean>>): string | undefined {
  const missing = Object.keys(packages).filter((name) => packages[name] === false);
  return missing.length === 0 ? undefined : `${missing.join(", ")} not installed`;
}

/** Returns true if a command runs here and succeeds. */
export function succeeds(command: string, ...args: readonly string[]): boolean {
  return whyNot(command, ...args) === undefined;
}

/** Returns true if the shell finds a program. */
export function isInstalled(program: string): boolean {
  return succeeds("sh", "-c", 'command -v "$0"', program);
}

const installed = resolve("tools/packages/node_modules");

/** Returns the reason that a package of tools/packages cannot be used; undefined if it is installed. */
export function whyNoTool(name: string): string | undefined {
  return existsSync(`${installed}/${name}`) ? undefined : `${name} is not installed: npm run tools`;
}

/** Returns the path of a program of tools/packages. */
export function toolProgram(name: string): string {
  return `${installed}/.bin/${name}`;
}

/** Loads a package of tools/packages. The caller says which part of it is used. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type says what is loaded
export function loadTool<Library>(name: string): Library {
  return createRequire(`${installed}/`)(name) as Library;
}

/** The reason that {@link bufCurl} is not available; undefined if it is. */
export const whyNoBuf = whyNoTool("@bufbuild/buf");

/** Calls a server with `buf curl`, a client of gRPC, gRPC-Web and Connect, and returns its output. */
export async function bufCurl(...args: readonly string[]): Promise<string> {
  return (await run(toolProgram("buf"), ["curl", ...args])).stdout;
}

const inNamespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"] as const;

/** Returns the reason that a mounting shell command fails here; undefined if it works. */
export function whyNotMounted(command: string): string | undefined {
  const [program, ...args] = inNamespace;
  return whyNot(program, ...args, command);
}

/** Returns the arguments before a command that run this mounting shell command first. */
export function afterMounting(command: string): string[] {
  return [...inNamespace, `${command} && exec "$@"`, "sh"];
}
