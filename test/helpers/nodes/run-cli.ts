/** Runs commands, in a shared process or in separate ones. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { HostedCommand } from "./cli-host.js";
import type { Teardown } from "./teardown.js";

/** The compiled command line, one file for each source file. */
export const cliPath = resolve("dist/src/main.js");
/** The command line as it is shipped, in a bundle that `npm run build` creates. */
export const shippedPath = resolve("dist/program/main.js");

/** The result of a command. */
export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of this process without settings of a node. */
export function cleanEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(GATEHOUSE_|TLSNOTARY_|NO_COLOR|FORCE_COLOR)/.test(name),
  );
  return { ...Object.fromEntries(own), ...more };
}

/** Environment and directory of a command. */
export interface CliSurroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

let host: ((command: HostedCommand) => Promise<CliResult>) | undefined;
let before: Promise<unknown> = Promise.resolve();

/** Runs a command in the shared process of this test file, after the earlier ones. */
export async function runCli(
  args: readonly string[],
  { env = {}, cwd = process.cwd() }: CliSurroundings = {},
): Promise<CliResult> {
  host ??= startHost();
  const result = before.then(() => host!({ args, env, cwd }));
  before = result.catch(() => undefined);
  return await result;
}

/** Runs a command that must succeed. Returns its stdout. */
export async function cliOutput(args: readonly string[], surroundings?: CliSurroundings): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, surroundings);
  if (code !== 0) {
    throw new Error(`gatehouse ${args.join(" ")} ended with ${code}: ${stderr}`);
  }
  return stdout;
}

/** Starts the shared process. It keeps this process alive only while a command runs. */
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

/** Runs a command in a separate process. */
export async function runCliProcess(
  args: readonly string[],
  { env = {}, cwd }: CliSurroundings = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [cliPath, ...args], { env: cleanEnvironment(env), cwd });
  const output = collect(child);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: output.stdout(), stderr: output.stderr() };
}

/** Collects the output of a process. */
export function collect(child: ChildProcess): { readonly stdout: () => string; readonly stderr: () => string } {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return { stdout: () => stdout, stderr: () => stderr };
}

/** A flag of {@link startNodeProcess}: starts the node without --recover. */
export const noRecover = "--no-recover";

/** A running command. */
export interface RunningCli {
  readonly child: ChildProcess;
  /** The first line on stdout, parsed. */
  readonly ready: {
    readonly event: string;
    readonly role: string;
    readonly rpc: string;
    readonly ports: Record<string, number>;
  };
  readonly port: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
}

/**
 * Starts a command with `--json`, and waits for its first line. The process is killed after the test.
 *
 * @param wrapper - A command that runs the command after it.
 * @param script - The script to run; by default the built command line.
 */
export async function startCli(
  t: Teardown,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  wrapper: readonly string[] = [],
  script = cliPath,
): Promise<RunningCli> {
  const [command, ...rest] = [...wrapper, process.execPath, script, ...args, "--json"];
  const child = spawn(command!, rest, { env: cleanEnvironment(env) });
  t.teardown(() => child.kill("SIGKILL"));
  const output = collect(child);
  const ended = once(child, "close").then(([code]) => code as number | null);
  const line = new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const [first, ...rest] = output.stdout().split("\n");
      if (first !== undefined && rest.length > 0) {
        resolve(first);
      }
    });
    void ended.then((code) => reject(new Error(`ended with ${code}: ${output.stderr()}`)));
  });
  const ready = JSON.parse(await line) as RunningCli["ready"];
  return { child, ready, port: ready.ports.rpc ?? 0, ended, ...output };
}

/**
 * Starts a node in a child process, on free ports of 127.0.0.1, which logs only fatal errors. It starts with --recover,
 * unless {@link noRecover} is among the flags.
 */
export async function startNodeProcess(
  t: Teardown,
  dir: string,
  flags: readonly string[],
  wrapper: readonly string[] = [],
  script = cliPath,
): Promise<RunningCli> {
  const args = ["start", "--data-dir", dir, "--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  const nodeFlags = flags.includes(noRecover) ? flags.filter((flag) => flag !== noRecover) : ["--recover", ...flags];
  return await startCli(t, [...args, "--log-level", "fatal", ...nodeFlags], {}, wrapper, script);
}
