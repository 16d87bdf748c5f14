/** Completion scripts for shells, generated from the command line definition. They require only the shell. */
import type { Command, Option } from "commander";

interface Suggestion {
  readonly word: string;
  readonly description: string;
  /** Value of a flag, if the shell can complete it: a path, or one of several words. */
  readonly value?: Value;
}

type Value = "file" | "directory" | readonly string[];

interface CommandContext {
  /** Command with its parents, such as `storage create`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly Suggestion[];
  readonly flags: readonly Suggestion[];
  /** True if a file may come next as well. */
  readonly acceptsFile: boolean;
}

const generators = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export function completionScript(shell: keyof typeof generators, program: Command): string {
  return generators[shell](listContexts(program, []));
}

function listContexts(command: Command, names: readonly string[]): CommandContext[] {
  const { commands, registeredArguments: args } = command;
  const choices = args.flatMap(({ argChoices = [] }) => argChoices);
  const context = {
    path: names.join(" "),
    words: [
      ...commands.map((subcommand) => ({ word: subcommand.name(), description: subcommand.description() })),
      ...choices.map((word) => ({ word, description: "" })),
    ],
    flags: command
      .createHelp()
      .visibleOptions(command)
      .map((option) => ({ word: option.long!, description: option.description, value: valueOf(option) })),
    acceptsFile: args.some((argument) => argument.name() === "FILE"),
  };
  const ofSubcommands = commands.map((subcommand) => listContexts(subcommand, [...names, subcommand.name()]));
  return [context, ...ofSubcommands.flat()];
}

function valueOf({ flags, argChoices }: Option): Value | undefined {
  const placeholder = /<(.+)>/.exec(flags)?.[1] ?? "";
  return argChoices ?? ({ FILE: "file", PATH: "file", DIR: "directory" } as const)[placeholder];
}

/** Quotes a text in single quotes, for every supported shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** Returns the paths of the commands as a `case` pattern. */
function pathPatterns(contexts: readonly CommandContext[]): string {
  return contexts
    .filter(({ path }) => path !== "")
    .map(({ path }) => quote(path))
    .join("|");
}

/** Returns the cases of flags whose value a shell completes. */
function valueCases(contexts: readonly CommandContext[], complete: (value: Value) => string): string {
  const cases = contexts.flatMap(({ path, flags }) =>
    flags.map(({ word, value }) =>
      value === undefined ? [] : [`    ${quote(`${path} ${word}`)}) ${complete(value)}; return ;;`],
    ),
  );
  return cases.flat().join("\n");
}

/** Returns a case for each command, which sets its candidates. */
function wordCases(contexts: readonly CommandContext[], set: (candidates: readonly Suggestion[]) => string): string {
  return contexts.map(({ path, words, flags }) => `    ${quote(path)}) ${set([...words, ...flags])} ;;`).join("\n");
}

function bashScript(contexts: readonly CommandContext[]): string {
  const complete = (value: Value): string => {
    const words = typeof value === "string" ? { file: "-f", directory: "-d" }[value] : `-W ${quote(value.join(" "))}`;
    return `COMPREPLY=($(compgen ${words} -- "$current"))`;
  };
  const set = (candidates: readonly Suggestion[]): string =>
    `words=${quote(candidates.map(({ word }) => word).join(" "))}`;
  return `# Completion of gatehouse for bash.
_gatehouse() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} at="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${at:+$at }\${COMP_WORDS[i]}" in
      ${pathPatterns(contexts)}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $before" in
${valueCases(contexts, complete)}
  esac
  case "$at" in
${wordCases(contexts, set)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gatehouse gatehouse
`;
}

function zshScript(contexts: readonly CommandContext[]): string {
  const complete = (value: Value): string =>
    typeof value === "string"
      ? { file: "_files", directory: "_files -/" }[value]
      : `compadd -- ${value.map(quote).join(" ")}`;
  const describe = ({ word, description }: Suggestion): string =>
    quote(`${word}${description === "" ? "" : `:${description.replaceAll(":", "\\:")}`}`);
  const set = (candidates: readonly Suggestion[]): string => `words_here=(${candidates.map(describe).join(" ")})`;
  return `#compdef gatehouse
# Completion of gatehouse for zsh.
_gatehouse() {
  local at="" i
  local -a words_here
  for ((i = 2; i < CURRENT; i++)); do
    case "\${at:+$at }\${words[i]}" in
      ${pathPatterns(contexts)}) at="\${at:+$at }\${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT - 1]}" in
${valueCases(contexts, complete)}
  esac
  case "$at" in
${wordCases(contexts, set)}
  esac
  _describe -o gatehouse words_here || _files
}
if [ "$funcstack[1]" = "_gatehouse" ]; then
  _gatehouse "$@"
else
  compdef _gatehouse gatehouse
fi
`;
}

function fishScript(contexts: readonly CommandContext[]): string {
  const complete = (value: Value | undefined): string => {
    if (value === undefined) {
      return "";
    }
    return typeof value === "string"
      ? { file: " -rF", directory: " -xa '(__fish_complete_directories)'" }[value]
      : ` -xa ${quote(value.join(" "))}`;
  };
  const describe = (description: string): string => (description === "" ? "" : ` -d ${quote(description)}`);
  const lines = contexts.flatMap(({ path, words, flags, acceptsFile }) => {
    const command = `complete -c gatehouse -n ${quote(`__gatehouse_at "${path}"`)}`;
    return [
      ...(acceptsFile ? [] : [`${command} -f`]),
      ...words.map(({ word, description }) => `${command} -a ${quote(word)}${describe(description)}`),
      ...flags.map(
        ({ word, description, value }) => `${command} -l ${word.slice(2)}${complete(value)}${describe(description)}`,
      ),
    ];
  });
  return `# Completion of gatehouse for fish.
function __gatehouse_at
  set -l at ""
  for word in (commandline -opc)[2..-1]
    switch (string trim "$at $word")
      case ${pathPatterns(contexts).replaceAll("|", " ")}
        set at (string trim "$at $word")
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}
