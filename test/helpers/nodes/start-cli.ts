/** Long-running commands, each in a child process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cleanEnvironment, cliPath, collect } from "./run-cli.js";
import type { Teardown } from "./teardown.js";

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
