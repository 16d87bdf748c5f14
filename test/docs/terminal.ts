/** A terminal of a reader: a shell that keeps its directory and variables from one command to the next. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** How a command ended. */
export interface Outcome {
  /** Of stdout and stderr. */
  readonly output: string;
  readonly code: number;
}

/** A terminal. */
export interface Terminal {
  /** Runs a command to its end. */
  run(command: string): Promise<Outcome>;
  /**
   * Runs a command until what it has printed so far is enough; it goes on running.
   *
   * @returns what it printed, and its exit code if it has ended.
   */
  start(
    command: string,
    isEnough: (output: string) => boolean,
  ): Promise<{ readonly output: string; readonly code?: number }>;
  /** Waits for what runs to end by itself. */
  end(): Promise<Outcome>;
  /** Presses Ctrl-C, and waits for what runs to end. */
  stop(): Promise<Outcome>;
  /** Ends it with all that it has started. */
  close(): Promise<void>;
}

/** How long one command may take. */
const patienceMs = 90_000;
const mark = "--- the command has ended with";

/** Opens one. */
export function openTerminal(options: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For the files that hold the commands. */
  readonly scratch: string;
}): Terminal {
  const { cwd, env, scratch } = options;
  // A process group of its own, so that Ctrl-C and the end reach everything that it started.
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

  async function begin(command: string): Promise<void> {
    const file = join(scratch, `${shell.pid}-${count++}.sh`);
    await writeFile(file, `${command}\n`);
    output = "";
    shell.stdin.write(`. '${file}' </dev/null\nprintf '\\n${mark} %d\\n' $?\n`);
  }

  function outcome(): Outcome | undefined {
    const [end, code] = new RegExp(`\\n${mark} (\\d+)\\n$`).exec(output) ?? [];
    return end === undefined ? undefined : { output: output.slice(0, -end.length), code: Number(code) };
  }

  async function wait<T>(look: () => T | undefined): Promise<T> {
    const giveUpAtMs = Date.now() + patienceMs;
    for (let found = look(); ; found = look()) {
      if (found !== undefined) {
        return found;
      }
      const isOpen = shell.exitCode === null && shell.signalCode === null;
      if (!isOpen || Date.now() > giveUpAtMs) {
        throw new Error(`${isOpen ? "It does not end or print what is shown" : "It ends the shell"}:\n${output}`);
      }
      const more = new Promise<void>((resolve) => (wake = resolve));
      await Promise.race([more, closed, sleep(1_000)]);
    }
  }

  return {
    async run(command) {
      await begin(command);
      return await wait(outcome);
    },
    async start(command, isEnough) {
      await begin(command);
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
        // All of it has ended.
      }
      await closed;
    },
  };
}
