/** Runs the commands of a document in order, as a reader would, and compares the output with the shown one. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isInstalled } from "../helpers/nodes/when.js";
import type { Teardown } from "../helpers/nodes/teardown.js";
import { toolProgram } from "../helpers/process/programs.js";
import { type Block, isPassage, readCommands, readSteps, type Step } from "./document.js";
import { linesOf, matchOutput, type Names, namesOf, withNames } from "./output.js";
import { createSandbox, namesMachinePath, type Sandbox } from "./sandbox.js";
import { openTerminal, type Outcome, type Terminal } from "./terminal.js";

/** A command to run. */
interface Action {
  readonly line: number;
  readonly command: string;
  /** The shown output; undefined if the output is not compared. */
  readonly shown: readonly string[] | undefined;
  readonly stays: boolean;
  readonly fails: boolean;
  match(output: string, names: Names): Names | undefined;
}

/**
 * Runs a document. Stops everything that it started before it returns. Failures and skipped blocks have their line
 * number first.
 *
 * @param existing - The sandbox to use; by default a new one.
 */
export async function runDocument(t: Teardown, markdown: string, existing?: Sandbox) {
  const failures: string[] = [];
  const skipped: string[] = [];
  let commands = 0;
  try {
    const steps = readSteps(markdown).filter((step) => {
      const reason = step.kind === "block" ? skipReason(step) : undefined;
      skipped.push(...(reason === undefined ? [] : [`${step.line}: ${reason}`]));
      return reason === undefined;
    });
    if (steps.length > 0) {
      const sandbox = existing ?? (await createSandbox(t));
      commands = await runSteps(t, steps, sandbox, (failure) => failures.push(failure));
      failures.push(...(await sandbox.changedFiles()).map((change) => `0: git status shows ${change}`));
    }
  } catch (error) {
    failures.push(
      (error as Error).message.replace(/^(?:line (\d+): )?/, (_, line: string | undefined) => `${line ?? 0}: `),
    );
  }
  return { failures, skipped, commands };
}

function skipReason({ directions: { skip, needs } }: Block): string | undefined {
  const missing = needs.filter((program) => !isInstalled(program) && !existsSync(toolProgram(program)));
  return skip ?? (missing.length > 0 ? `${missing.join(", ")} is not installed` : undefined);
}

/**
 * Runs the steps in order, and stops the commands that still run after the last one.
 *
 * @returns The number of commands that were run.
 * @throws Error if the document cannot continue.
 */
async function runSteps(
  t: Teardown,
  steps: readonly Step[],
  sandbox: Sandbox,
  onFailure: (failure: string) => void,
): Promise<number> {
  const terminals = openTerminals(t, sandbox);
  let names: Names = new Map();
  let commands = 0;

  async function runAction(action: Action, terminal: string): Promise<void> {
    if (namesMachinePath(action.command)) {
      throw new Error(`line ${action.line}: a block with absolute paths cannot be run, and must be skipped`);
    }
    commands++;
    names = namesOf(action.command, names);
    const match = (output: string): Names | undefined => action.match(sandbox.toDocument(output), names);
    const text = sandbox.toSandbox(withNames(action.command, names));
    const { output, code } = await (
      action.stays
        ? terminals.start(terminal, text, (soFar) => match(soFar) !== undefined)
        : runWithRetry(terminals.get(terminal), text)
    ).catch((error: unknown) => {
      throw new Error(`line ${action.line}: ${action.command}\n${sandbox.toDocument((error as Error).message)}`);
    });
    const isExpectedEnd = action.stays ? code === undefined : code !== undefined && (code !== 0) === action.fails;
    const matched = match(output);
    names = matched ?? names;
    if (matched === undefined || !isExpectedEnd) {
      const ending = isExpectedEnd ? "" : ` (exit code ${code})`;
      const shown = matched === undefined && action.shown !== undefined ? ["--- shown:", ...action.shown] : [];
      const lines = [...linesOf(sandbox.toDocument(output)), ...shown];
      onFailure([`${action.line}: ${action.command}${ending}`, ...lines].join("\n"));
    }
  }

  async function finish(terminal: string, how: "stop" | "end", line: number): Promise<void> {
    const { output, code } = await terminals.finish(terminal, how);
    if (code !== 0) {
      onFailure(`${line}: the command in ${terminal} ends with ${code}:\n${output}`);
    }
  }

  async function runStep(step: Step): Promise<void> {
    if (step.kind !== "block") {
      await finish(step.terminal, step.kind, step.line);
    } else if (step.directions.saveAs !== undefined) {
      const path = join(sandbox.root, step.directions.saveAs);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, `${sandbox.toSandbox(withNames(step.text, names))}\n`);
    } else if (step.directions.partOf !== undefined) {
      const file = await readFile(join(sandbox.root, step.directions.partOf), "utf8");
      if (!isPassage(sandbox.toDocument(file), step.text)) {
        onFailure(`${step.line}: not a passage of ${step.directions.partOf}`);
      }
    } else if (step.language === "console" || step.language === "sh") {
      for (const action of actionsOf(step)) {
        await runAction(action, step.directions.terminal);
      }
    } else {
      onFailure(`${step.line}: no direction says how to run or why to skip this block`);
    }
  }

  try {
    for (const step of steps) {
      await runStep(step);
    }
    for (const terminal of terminals.busy()) {
      await finish(terminal, "stop", 0);
    }
  } finally {
    await terminals.close();
  }
  return commands;
}

/** Runs a command again while an overloaded node rejects it, up to 20 times. A rejected request has no effect. */
async function runWithRetry(terminal: Terminal, command: string): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await terminal.run(command);
    if (!/\bOVERLOADED\b/.test(outcome.output) || attempt === 20) {
      return outcome;
    }
    await sleep(1_000);
  }
}

/** Returns the commands of a console block with their output, or the script of an sh block. */
function actionsOf(block: Block): Action[] {
  const { stays, until, fails, varies } = block.directions;
  const commands =
    block.language === "sh" ? [{ line: block.line, text: block.text, shown: undefined }] : readCommands(block);
  if (stays && until === undefined && commands.at(-1)?.shown === undefined) {
    throw new Error(`line ${block.line}: no output says how long to wait for a command that stays`);
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

function openTerminals(t: Teardown, sandbox: Sandbox) {
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
    async start(name: string, command: string, isEnough: (output: string) => boolean) {
      const started = await get(name).start(command, isEnough);
      if (started.code === undefined) {
        busy.add(name);
      }
      return started;
    },
    async finish(name: string, how: "stop" | "end"): Promise<Outcome> {
      if (!busy.delete(name)) {
        throw new Error(`nothing is running in the terminal ${name}`);
      }
      return await get(name)[how]();
    },
    /** Returns the names of terminals with a running command. */
    busy: () => [...busy],
    close,
  };
}
