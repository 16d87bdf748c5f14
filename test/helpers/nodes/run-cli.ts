/** Runs the command line: in a process that runs one command after the other, or in one of its own. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { HostedCommand } from "./cli-host.js";

/** The built command line. */
export const cliPath = resolve("dist/src/main.js");

/** How a command ended. */
export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of this process without any setting of a node. */
export function cleanEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(GATEHOUSE_|TLSNOTARY_|NO_COLOR|FORCE_COLOR)/.test(name),
  );
  return { ...Object.fromEntries(own), ...more };
}

/** What a command has beside its arguments. */
export interface CliSurroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

let host: ((command: HostedCommand) => Promise<CliResult>) | undefined;
let before: Promise<unknown> = Promise.resolve();

/** Runs a command to its end, after those before it, in the process that this file's commands share. */
export async function runCli(
  args: readonly string[],
  { env = {}, cwd = process.cwd() }: CliSurroundings = {},
): Promise<CliResult> {
  host ??= startHost();
  const result = before.then(() => host!({ args, env, cwd }));
  before = result.catch(() => undefined);
  return await result;
}

/** It ends when this process does, and keeps it alive only while a command runs. */
function startHost(): (command: HostedCommand) => Promise<CliResult> {
  const child = fork(new URL("cli-host.js", import.meta.url), { env: cleanEnvironment() });
  const ended = once(child, "exit").then(([code]): never => {
    throw new Error(`The process of the commands ended with ${code}.`);
  });
  ended.catch(() => undefined);
  return async (command) => {
    child.ref();
    child.channel!.ref();
    child.send(command);
    const [result] = (await Promise.race([once(child, "message"), ended])) as [CliResult];
    child.unref();
    child.channel!.unref();
    return result;
  };
}

/** Runs a command to its end in a process of its own. */
export async function runCliProcess(
  args: readonly string[],
  { env = {}, cwd }: CliSurroundings = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [cliPath, ...args], { env: cleanEnvironment(env), cwd });
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: output.stdout(), stderr: output.stderr() };
}

/** What a process prints, as far as it has. */
export function collect(child: ChildProcess): { readonly stdout: () => string; readonly stderr: () => string } {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return { stdout: () => stdout, stderr: () => stderr };
}
