/** Completion scripts, run in their shells. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { runCli } from "../helpers/nodes/run-cli.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

/** Command lines whose last word is incomplete, and candidates for that word. */
const cases: readonly (readonly [line: string, candidates: readonly string[]])[] = [
  ["st", ["start", "storage"]],
  ["storage ap", ["append"]],
  ["storage create --acc", ["--access"]],
  ["storage create --access ", ["public", "owner", "restricted"]],
  ["health --no", ["--node"]],
  ["--version heal", ["health"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["keygen --data-dir /us", ["/usr"]],
  ["storage get --key /etc/passw", ["/etc/passwd"]],
];

interface Shell {
  readonly shell: string;
  readonly args: readonly string[];
  /** Commands to run before the script. */
  readonly before: string;
}

/** Returns the output of a program that uses the completion script, split at NUL characters. */
async function runCompletion({ shell, args, before }: Shell, program: string): Promise<string[]> {
  const { stdout: script } = await runCli(["completion", shell]);
  const child = spawn(shell, [...args, "-c", `${before}\n${script}\n${program}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  return output.split("\0");
}

const bashProgram = (line: string): string =>
  `COMP_WORDS=(gatehouse ${line.replace(/ $/, " ''")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _gatehouse; printf '%s\\n' "\${COMPREPLY[@]}"; printf '\\0'`;

const zshProgram = (line: string): string =>
  `words=(gatehouse ${line.replace(/ $/, " ''")}); CURRENT=\${#words}; _gatehouse; printf '\\0'`;

/** Replacements of the completion functions of zsh, which print their arguments. */
const zshFunctions = `
  _describe() { print -l -- "\${(@)\${(@P)3}%%:*}" }
  compadd() { shift; print -l -- "$@" }
  compdef() { : }
  _files() { local word=\${words[CURRENT]}; print -l -- $~word*(N) }
`;

const shells = [
  { shell: "bash", args: ["--norc"], before: "", program: bashProgram },
  { shell: "zsh", args: ["-f"], before: zshFunctions, program: zshProgram },
  {
    shell: "fish",
    args: ["--no-config"],
    before: "",
    program: (line: string) => `complete -C "gatehouse ${line}" | string replace -r '\\t.*' ''; printf '\\0'`,
  },
];

for (const { shell, args, before, program } of shells) {
  testUnless(whyNot(shell, "--version"))(`${shell} completes commands, flags, and their values`, async (t) => {
    const outputs = await runCompletion({ shell, args, before }, cases.map(([line]) => program(line)).join("\n"));
    t.is(outputs.length, cases.length + 1);
    for (const [i, [line, candidates]] of cases.entries()) {
      const words = outputs[i]!.trim()
        .split("\n")
        .map((word) => word.replace(/\/$/, ""));
      const prefix = line.split(" ").at(-1)!;
      const matching = words.filter((word) => word.startsWith(prefix));
      t.true(
        candidates.every((word) => matching.includes(word)),
        `${line}: ${words.join(" ")}`,
      );
      // Except for paths and flags, there are no other candidates.
      if (!prefix.startsWith("/")) {
        t.deepEqual(
          matching.filter((word) => !candidates.includes(word) && !word.startsWith("--")),
          [],
          line,
        );
      }
    }
  });
}
