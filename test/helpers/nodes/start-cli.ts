/** Commands that run until they are told to stop, each as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cleanEnvironment, cliPath, collect } from "./run-cli.js";
import type { Teardown } from "./teardown.js";

/** Among the flags of {@link startNodeProcess}: its operator gives no word. */
export const noWord = "--no-word";

/** A command that runs until it is told to stop. */
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
  /** The exit code, once it has ended. */
  readonly ended: Promise<number | null>;
}

/**
 * Starts a command with `--json` and waits for its first line; it is killed after the test if it still runs.
 *
 * @param wrapper - A command that becomes the one that follows it.
 * @param script - The command line, where it is not the one that was built.
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
 * Starts a node as a process of its own, on free ports of 127.0.0.1, that logs nothing but its end. It has its operator's
 * word that its database holds all blocks there are, unless {@link noWord} is among the flags.
 */
export async function startNodeProcess(
  t: Teardown,
  dir: string,
  flags: readonly string[],
  wrapper: readonly string[] = [],
  script = cliPath,
): Promise<RunningCli> {
  const args = ["start", "--data-dir", dir, "--host", "127.0.0.1", "--rpc-port", "0", "--omni-port", "0"];
  const words = flags.includes(noWord) ? flags.filter((flag) => flag !== noWord) : ["--recover", ...flags];
  return await startCli(t, [...args, "--log-level", "fatal", ...words], {}, wrapper, script);
}
