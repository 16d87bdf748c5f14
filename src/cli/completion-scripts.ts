/** Completion scripts for shells, generated from the command line definition. They require only the shell. */
import type { Command, Option } from "commander";

interface Suggestion {
  readonly word: string;
  readonly description: string;
}

/** Flag that takes a value. */
interface ValueFlag {
  readonly flag: string;
  readonly value: "file" | "directory" | readonly string[];
}

interface CommandContext {
  /** Command with its parents, such as `storage create`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly Suggestion[];
  readonly flags: readonly Suggestion[];
  readonly values: readonly ValueFlag[];
  /** True if a file may come next as well. */
  readonly acceptsFile: boolean;
}

const generators = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export function completionScript(shell: keyof typeof generators, program: Command): string {
  return generators[shell](listContexts(program, []));
}

function listContexts(command: Command, names: readonly string[]): CommandContext[] {
  const options = command.createHelp().visibleOptions(command);
  const context = {
    path: names.join(" "),
    words: [
      ...command.commands.map((subcommand) => ({ word: subcommand.name(), description: subcommand.description() })),
      ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
        argChoices.map((word) => ({ word, description: "" })),
      ),
    ],
    flags: options.map((option) => ({ word: option.long!, description: option.description })),
    values: options.flatMap(readValue),
    acceptsFile: command.registeredArguments.some((argument) => argument.name() === "FILE"),
  };
  return [
    context,
    ...command.commands.flatMap((subcommand) => listContexts(subcommand, [...names, subcommand.name()])),
  ];
}

/** Returns the flag if the shell can complete its value: a choice, a file or a directory. */
function readValue({ long, flags, argChoices }: Option): ValueFlag[] {
  const placeholder = /<(.+)>/.exec(flags)?.[1];
  if (argChoices !== undefined) {
    return [{ flag: long!, value: argChoices }];
  }
  return placeholder === "FILE" || placeholder === "DIR" || placeholder === "PATH"
    ? [{ flag: long!, value: placeholder === "DIR" ? "directory" : "file" }]
    : [];
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

function bashScript(contexts: readonly CommandContext[]): string {
  const valueCases = contexts.flatMap(({ path, values }) =>
    values.map(({ flag, value }) => {
      const source = value === "file" ? "-f" : value === "directory" ? "-d" : `-W ${quote(value.join(" "))}`;
      return `    ${quote(`${path} ${flag}`)}) COMPREPLY=($(compgen ${source} -- "$current")); return ;;`;
    }),
  );
  const wordCases = contexts.map(({ path, words, flags }) => {
    const candidates = [...words, ...flags].map(({ word }) => word).join(" ");
    return `    ${quote(path)}) words=${quote(candidates)} ;;`;
  });
  return `# Completion of gatehouse for bash.
_gatehouse() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} at="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${at:+$at }\${COMP_WORDS[i]}" in
      ${pathPatterns(contexts)}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $before" in
${valueCases.join("\n")}
  esac
  case "$at" in
${wordCases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _gatehouse gatehouse
`;
}

function zshScript(contexts: readonly CommandContext[]): string {
  const valueCases = contexts.flatMap(({ path, values }) =>
    values.map(({ flag, value }) => {
      const completer =
        value === "file" ? "_files" : value === "directory" ? "_files -/" : `compadd -- ${value.map(quote).join(" ")}`;
      return `    ${quote(`${path} ${flag}`)}) ${completer}; return ;;`;
    }),
  );
  const describe = ({ word, description }: Suggestion): string =>
    quote(`${word}${description === "" ? "" : `:${description.replaceAll(":", "\\:")}`}`);
  const wordCases = contexts.map(
    ({ path, words, flags }) => `    ${quote(path)}) words_here=(${[...words, ...flags].map(describe).join(" ")}) ;;`,
  );
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
${valueCases.join("\n")}
  esac
  case "$at" in
${wordCases.join("\n")}
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
  const lines = contexts.flatMap(({ path, words, flags, values, acceptsFile }) => {
    const command = `complete -c gatehouse -n ${quote(`__gatehouse_at "${path}"`)}`;
    const describe = (description: string): string => (description === "" ? "" : ` -d ${quote(description)}`);
    return [
      ...(acceptsFile ? [] : [`${command} -f`]),
      ...words.map(({ word, description }) => `${command} -a ${quote(word)}${describe(description)}`),
      ...flags.map(({ word, description }) => {
        const value = values.find(({ flag }) => flag === word)?.value;
        const completer =
          value === undefined
            ? ""
            : value === "file"
              ? " -rF"
              : value === "directory"
                ? " -xa '(__fish_complete_directories)'"
                : ` -xa ${quote(value.join(" "))}`;
        return `${command} -l ${word.slice(2)}${completer}${describe(description)}`;
      }),
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
