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

export type Terminal = ReturnType<typeof openTerminal>;

/** The time limit of a command. */
const timeoutMs = 90_000;
const mark = "--- the command has ended with";

/** Starts a shell. */
export function openTerminal(options: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory for the files with the commands. */
  readonly scratch: string;
}) {
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
    /** Runs a command to its end. */
    async run(command: string): Promise<Outcome> {
      await send(command);
      return await wait(outcome);
    },
    /** Starts a command, and waits until it has printed enough. Returns its output, and its code if it has ended. */
    async start(
      command: string,
      isEnough: (output: string) => boolean,
    ): Promise<Omit<Outcome, "code"> & { code?: number }> {
      await send(command);
      return await wait(() => outcome() ?? (isEnough(output) ? { output } : undefined));
    },
    /** Waits until the running command exits. */
    end: () => wait(outcome),
    /** Sends SIGINT, and waits until the running command exits. */
    async stop(): Promise<Outcome> {
      process.kill(-shell.pid!, "SIGINT");
      return await wait(outcome);
    },
    /** Kills the shell and everything that it has started. */
    async close(): Promise<void> {
      try {
        process.kill(-shell.pid!, "SIGKILL");
      } catch {
        // Everything has ended already.
      }
      await closed;
    },
  };
}
