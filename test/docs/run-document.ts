/** Does what a document shows, in its order, as a reader would, and compares what comes with what is shown. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isInstalled } from "../helpers/nodes/when.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { toolProgram } from "../helpers/nodes/tools.js";
import { type Block, isPassage, readCommands, readSteps, type Step } from "./document.js";
import { linesOf, matchOutput, type Names, namesOf, withNames } from "./output.js";
import { makeSandbox, namesMachinePath, type Sandbox } from "./sandbox.js";
import { openTerminal, type Outcome, type Terminal } from "./terminal.js";

/** What came of a document. */
export interface Report {
  /** Each begins with a line number. */
  readonly failures: readonly string[];
  readonly skipped: readonly string[];
  /** How many commands were run. */
  readonly commands: number;
}

/** A command as it is to be run. */
interface Action {
  readonly line: number;
  readonly command: string;
  /** The lines below it; undefined where none are compared. */
  readonly shown: readonly string[] | undefined;
  readonly stays: boolean;
  readonly fails: boolean;
  /** The names that are known when the output is the expected one. */
  match(output: string, names: Names): Names | undefined;
}

/**
 * Runs a document; what it started is stopped when this returns, or the test ends.
 *
 * @param existing - A sandbox to run it in; one of its own when left out.
 */
export async function runDocument(t: Teardown, markdown: string, existing?: Sandbox): Promise<Report> {
  const failures: string[] = [];
  const skipped: string[] = [];
  let commands = 0;
  try {
    const steps = readSteps(markdown).filter((step) => {
      const reason = step.kind === "block" ? whySkipped(step) : undefined;
      skipped.push(...(reason === undefined ? [] : [`${step.line}: ${reason}`]));
      return reason === undefined;
    });
    if (steps.length > 0) {
      const sandbox = existing ?? (await makeSandbox(t));
      commands = await takeSteps(t, steps, sandbox, (failure) => failures.push(failure));
      failures.push(...(await sandbox.leftovers()).map((change) => `0: git status shows ${change}`));
    }
  } catch (error) {
    failures.push(
      (error as Error).message.replace(/^(?:line (\d+): )?/, (_, line: string | undefined) => `${line ?? 0}: `),
    );
  }
  return { failures, skipped, commands };
}

function whySkipped({ directions: { skip, needs } }: Block): string | undefined {
  const missing = needs.filter((program) => !isInstalled(program) && !existsSync(toolProgram(program)));
  return skip ?? (missing.length > 0 ? `${missing.join(", ")} is not installed` : undefined);
}

/**
 * Takes the steps one after the other, and stops what goes on running after the last one.
 *
 * @returns how many commands were run.
 * @throws Error where it makes no sense to go on.
 */
async function takeSteps(
  t: Teardown,
  steps: readonly Step[],
  sandbox: Sandbox,
  onFailure: (failure: string) => void,
): Promise<number> {
  const terminals = openTerminals(t, sandbox);
  let names: Names = new Map();
  let commands = 0;

  async function act(action: Action, terminal: string): Promise<void> {
    if (namesMachinePath(action.command)) {
      throw new Error(`line ${action.line}: a block that names paths of the machine is not run, and must be skipped`);
    }
    commands++;
    names = namesOf(action.command, names);
    const match = (output: string): Names | undefined => action.match(sandbox.toDocument(output), names);
    const text = sandbox.toSandbox(withNames(action.command, names));
    const { output, code } = await (
      action.stays
        ? terminals.start(terminal, text, (soFar) => match(soFar) !== undefined)
        : runPatiently(terminals.get(terminal), text)
    ).catch((error: unknown) => {
      throw new Error(`line ${action.line}: ${action.command}\n${sandbox.toDocument((error as Error).message)}`);
    });
    const endsWell = action.stays ? code === undefined : code !== undefined && (code !== 0) === action.fails;
    const matched = match(output);
    names = matched ?? names;
    if (matched === undefined || !endsWell) {
      const ending = endsWell ? "" : ` (exit code ${code})`;
      const shown = matched === undefined && action.shown !== undefined ? ["--- shown:", ...action.shown] : [];
      const lines = [...linesOf(sandbox.toDocument(output)), ...shown];
      onFailure([`${action.line}: ${action.command}${ending}`, ...lines].join("\n"));
    }
  }

  async function finish(terminal: string, how: "stop" | "end", line: number): Promise<void> {
    const { output, code } = await terminals.finish(terminal, how);
    if (code !== 0) {
      onFailure(`${line}: what runs in ${terminal} ends with ${code}:\n${output}`);
    }
  }

  async function take(step: Step): Promise<void> {
    if (step.kind !== "block") {
      await finish(step.terminal, step.kind, step.line);
    } else if (step.directions.saveAs !== undefined) {
      const path = join(sandbox.root, step.directions.saveAs);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, `${sandbox.toSandbox(withNames(step.text, names))}\n`);
    } else if (step.directions.partOf !== undefined) {
      const file = await readFile(join(sandbox.root, step.directions.partOf), "utf8");
      if (!isPassage(sandbox.toDocument(file), step.text)) {
        onFailure(`${step.line}: this is no passage of ${step.directions.partOf}`);
      }
    } else if (step.language === "console" || step.language === "sh") {
      for (const action of actionsOf(step)) {
        await act(action, step.directions.terminal);
      }
    } else {
      onFailure(`${step.line}: nothing says how this block is run, or why it is not`);
    }
  }

  try {
    for (const step of steps) {
      await take(step);
    }
    for (const terminal of terminals.busy()) {
      await finish(terminal, "stop", 0);
    }
  } finally {
    await terminals.close();
  }
  return commands;
}

/** A node of a busy machine may refuse a request and say when to ask again; what it refused was not done. */
async function runPatiently(terminal: Terminal, command: string): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await terminal.run(command);
    if (!/\bOVERLOADED\b/.test(outcome.output) || attempt === 20) {
      return outcome;
    }
    await sleep(1_000);
  }
}

/** In a console block each command is compared with the lines below it; a block of sh is one script. */
function actionsOf(block: Block): Action[] {
  const { stays, until, fails, varies } = block.directions;
  const commands =
    block.language === "sh" ? [{ line: block.line, text: block.text, shown: undefined }] : readCommands(block);
  if (stays && until === undefined && commands.at(-1)?.shown === undefined) {
    throw new Error(`line ${block.line}: nothing says until when what stays is waited for`);
  }
  return commands.map(({ line, text, shown }, i): Action => {
    const isLast = i === commands.length - 1;
    return {
      line,
      command: text,
      shown,
      stays: stays && isLast,
      fails: fails && isLast,
      match(output, names) {
        if (until !== undefined && isLast) {
          return output.includes(until) ? names : undefined;
        }
        return shown === undefined ? names : matchOutput(shown, output, names, varies);
      },
    };
  });
}

interface Terminals {
  /** Opens one of this name where there is none. */
  get(name: string): Terminal;
  start(name: string, command: string, isEnough: (output: string) => boolean): ReturnType<Terminal["start"]>;
  finish(name: string, how: "stop" | "end"): Promise<Outcome>;
  /** Those in which something goes on running. */
  busy(): string[];
  close(): Promise<void>;
}

function openTerminals(t: Teardown, sandbox: Sandbox): Terminals {
  const open = new Map<string, Terminal>();
  const busy = new Set<string>();
  const close = async (): Promise<void> => {
    await Promise.all([...open.values()].map((terminal) => terminal.close()));
    open.clear();
  };
  t.teardown(close);

  function get(name: string): Terminal {
    if (busy.has(name)) {
      throw new Error(`something is running in the terminal ${name}`);
    }
    const terminal = open.get(name) ?? openTerminal({ ...sandbox, cwd: sandbox.root });
    open.set(name, terminal);
    return terminal;
  }

  return {
    get,
    async start(name, command, isEnough) {
      const started = await get(name).start(command, isEnough);
      if (started.code === undefined) {
        busy.add(name);
      }
      return started;
    },
    async finish(name, how) {
      if (!busy.delete(name)) {
        throw new Error(`nothing is running in the terminal ${name}`);
      }
      return await get(name)[how]();
    },
    busy: () => [...busy],
    close,
  };
}
