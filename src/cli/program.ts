/** Command line definition for commander, and the layout of its help pages, which fit the terminal. */
import { Command, type CommanderError, type Option } from "commander";
import { InputError } from "../base/errors/start-error.js";
import { version } from "../base/version.js";
import { type CommandName, commands, descriptions } from "./commands.js";
import { widthOf, wrap } from "./terminal/wrap.js";

/** Creates the command line. It has all commands by name, and the requested ones with their arguments and flags. */
export async function createProgram(isRequested: (name: string) => boolean): Promise<Command> {
  const program = new Command("gatehouse")
    .description("The face of a network node: gRPC services inside, plain HTTP and JSON outside.")
    .version(version)
    .addHelpText(
      "after",
      `
Try it:
  gatehouse devnet         two connected nodes
  gatehouse init           a network of your own; then
  gatehouse start          its first node
  gatehouse start --help   every option of a node
  gatehouse health         health of a running node

Exit codes:
  0  done
  1  failed, or rejected by the node
  2  wrong option, configuration or file
  3  the node does not respond`,
    );
  fitHelp(program);
  for (const [name, description] of Object.entries(descriptions)) {
    const command = program.command(name).description(description);
    if (isRequested(name)) {
      const add = await commands[name as CommandName]();
      add(command, () => createProgram(() => true));
    }
  }
  unifyErrors(program, []);
  return program;
}

/** Converts the errors of commander to InputError, with the matching help page. */
function unifyErrors(command: Command, above: readonly string[]): void {
  const names = [...above, command.name()];
  command.exitOverride((error) => {
    const hasPrintedHelp = error.exitCode === 0 || error.code === "commander.help";
    throw hasPrintedHelp ? error : new InputError(describeUsageError(error, names.join(" ")));
  });
  for (const subcommand of command.commands) {
    unifyErrors(subcommand, names);
  }
}

/** Formats an error of commander in one line, with the command for help. */
function describeUsageError({ message }: CommanderError, command: string): string {
  const [first = "", ...more] = withoutAlias(message.replace(/^error: /, "")).split(/\s*\n\s*/);
  const summary = `${first.slice(0, 1).toUpperCase()}${first.slice(1)}`.replace(/[.:]?$/, "");
  return `${[summary, ...more].join(" ").trim()}${more.length > 0 && more.at(-1)!.endsWith(".") ? "" : "."} See: ${command} --help`;
}

/** Removes the first of two long names of a flag, which is an alias. */
function withoutAlias(text: string): string {
  return text.replace(/(^|')--[a-z-]+, (?=--)/, "$1");
}

/** Limit on the line length for readability, however wide the terminal is. */
const maxWidth = 80;
/** Minimum width of a description next to its term. A narrower description goes below the term. */
const minDescription = 36;
const indent = "  ";
/** Placeholder for a space at which a line must not break. */
const noBreak = "\u00a0";

/** Makes the help of a command, and of subcommands added later, fit the terminal. */
function fitHelp(command: Command): void {
  const width = (): number => Math.min(widthOf(process.stdout), maxWidth);
  command
    .configureHelp({
      // The page of a subcommand shows its arguments.
      subcommandTerm: (subcommand) => subcommand.name(),
      optionTerm: ({ flags }) => withoutAlias(flags),
      optionDescription: describeFlag,
      formatItem: (term, termWidth, description) => formatItem(term, termWidth, description, width()),
    })
    .configureOutput({
      getOutHelpWidth: width,
      getErrHelpWidth: width,
      writeOut: (text) => process.stdout.write(fitText(text, width())),
      writeErr: (text) => process.stderr.write(fitText(text, width())),
      // `run` prints these errors in the format of all others.
      outputError: () => undefined,
    });
}

/** Describes a flag with its choices, its default and its environment variable. */
function describeFlag({ description, argChoices, defaultValue, defaultValueDescription, envVar }: Option): string {
  const fallback = defaultValueDescription ?? String(defaultValue ?? "");
  return [
    description,
    argChoices === undefined ? "" : `One of ${argChoices.join(", ")}.`,
    fallback === "" || typeof defaultValue === "boolean" ? "" : `Default: ${fallback}.`,
    envVar === undefined ? "" : `[env: ${envVar}]`,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

function formatItem(term: string, termWidth: number, description: string, width: number): string {
  const start = indent.length + termWidth + indent.length;
  if (width - start >= minDescription) {
    const lines = wrap(description, width - start, false);
    return `${indent}${term.padEnd(termWidth)}${indent}${lines.join(`\n${" ".repeat(start)}`)}`.trimEnd();
  }
  const below = wrap(description, width - 3 * indent.length, false).map((line) => `${indent.repeat(3)}${line}`);
  return [`${indent}${term}`, ...(description === "" ? [] : below)].join("\n");
}

/**
 * Breaks long lines. Joins the lines of a paragraph before breaking, and breaks indented lines separately. A command
 * continues after a backslash, so that it can be copied.
 */
function fitText(text: string, width: number): string {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    lines.push(...(paragraph.length === 0 ? [] : wrap(paragraph.join(" "), width, false)));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    if (/^\S/.test(line)) {
      paragraph.push(line);
    } else {
      endParagraph();
      lines.push(...fitLine(line, width));
    }
  }
  endParagraph();
  return lines.join("\n");
}

function fitLine(line: string, width: number): string[] {
  if (line.length <= width) {
    return [line];
  }
  const [, start = "", rest = ""] = /^(\s*)(.*)$/.exec(line)!;
  const isCommand = /^([A-Z_]+=\S+ )?(gatehouse|curl) /.test(rest);
  const end = isCommand ? " \\" : "";
  const hanging = start + indent;
  const unbroken = isCommand ? rest.replace(/'[^']*'/g, (quoted) => quoted.replaceAll(" ", noBreak)) : rest;
  const parts = wrap(unbroken, width - hanging.length - end.length, false).map((part) => part.replaceAll(noBreak, " "));
  return parts.map((part, i) => (i === 0 ? start : hanging) + part + (i === parts.length - 1 ? "" : end));
}
