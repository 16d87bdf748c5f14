/** A terminal of a reader: a shell with a current directory and variables. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The result of a command. */
export interface Outcome {
  /** stdout and stderr, in order. */
  readonly output: string;
  readonly code: number;
}

/** A running shell. */
export interface Terminal {
  /** Runs a command to its end. */
  run(command: string): Promise<Outcome>;
  /**
   * Starts a command, and waits until it has printed enough. The command keeps running.
   *
   * @returns Its output so far, and its exit code if it has ended.
   */
  start(
    command: string,
    isEnough: (output: string) => boolean,
  ): Promise<{ readonly output: string; readonly code?: number }>;
  /** Waits until the running command exits. */
  end(): Promise<Outcome>;
  /** Sends SIGINT, and waits until the running command exits. */
  stop(): Promise<Outcome>;
  /** Kills the shell and everything that it has started. */
  close(): Promise<void>;
}

/** The time limit of a command. */
const timeoutMs = 90_000;
const mark = "--- the command has ended with";

/** Starts a shell. */
export function openTerminal(options: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory for the files with the commands. */
  readonly scratch: string;
}): Terminal {
  const { cwd, env, scratch } = options;
  // A separate process group, so that signals reach everything that the shell started.
  const shell = spawn("bash", ["--noprofile", "--norc"], { cwd, env, detached: true });
  const closed = once(shell, "close");
  let output = "";
  let count = 0;
  let wake = (): void => undefined;
  shell.stdin.on("error", () => undefined);
  shell.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    wake();
  });
  shell.stdin.write("exec 2>&1\nshopt -s expand_aliases\n");

  async function send(command: string): Promise<void> {
    const file = join(scratch, `${shell.pid}-${count++}.sh`);
    await writeFile(file, `${command}\n`);
    output = "";
    shell.stdin.write(`. '${file}' </dev/null\nprintf '\\n${mark} %d\\n' $?\n`);
  }

  function outcome(): Outcome | undefined {
    const [end, code] = new RegExp(`\\n${mark} (\\d+)\\n$`).exec(output) ?? [];
    return end === undefined ? undefined : { output: output.slice(0, -end.length), code: Number(code) };
  }

  async function wait<T>(check: () => T | undefined): Promise<T> {
    const deadlineMs = Date.now() + timeoutMs;
    for (let found = check(); ; found = check()) {
      if (found !== undefined) {
        return found;
      }
      const isOpen = shell.exitCode === null && shell.signalCode === null;
      if (!isOpen || Date.now() > deadlineMs) {
        throw new Error(`${isOpen ? "It does not end or print what is shown" : "It ends the shell"}:\n${output}`);
      }
      const more = new Promise<void>((resolve) => (wake = resolve));
      await Promise.race([more, closed, sleep(1_000)]);
    }
  }

  return {
    async run(command) {
      await send(command);
      return await wait(outcome);
    },
    async start(command, isEnough) {
      await send(command);
      return await wait(() => outcome() ?? (isEnough(output) ? { output } : undefined));
    },
    end: () => wait(outcome),
    async stop() {
      process.kill(-shell.pid!, "SIGINT");
      return await wait(outcome);
    },
    async close() {
      try {
        process.kill(-shell.pid!, "SIGKILL");
      } catch {
        // Everything has ended already.
      }
      await closed;
    },
  };
}
