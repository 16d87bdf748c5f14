/** The scripts that complete a command line, in the shells that they are for. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { runCli } from "../helpers/nodes/run-cli.js";
import { testUnless, whyNot } from "../helpers/nodes/when.js";

/** What is typed, the last word not to its end, and words that are offered for it. */
const cases: readonly (readonly [typed: string, offered: readonly string[]])[] = [
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
  /** Run before the script. */
  readonly before: string;
}

async function offers({ shell, args, before }: Shell, program: string): Promise<string[]> {
  const { stdout: script } = await runCli(["completion", shell]);
  const child = spawn(shell, [...args, "-c", `${before}\n${script}\n${program}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  return output.split("\0");
}

const bashProgram = (typed: string): string =>
  `COMP_WORDS=(gatehouse ${typed.replace(/ $/, " ''")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _gatehouse; printf '%s\\n' "\${COMPREPLY[@]}"; printf '\\0'`;

const zshProgram = (typed: string): string =>
  `words=(gatehouse ${typed.replace(/ $/, " ''")}); CURRENT=\${#words}; _gatehouse; printf '\\0'`;

/** What a shell that completes has: here they print what they are given. */
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
    program: (typed: string) => `complete -C "gatehouse ${typed}" | string replace -r '\\t.*' ''; printf '\\0'`,
  },
];

for (const { shell, args, before, program } of shells) {
  testUnless(whyNot(shell, "--version"))(`${shell} completes commands, flags, and what they take`, async (t) => {
    const found = await offers({ shell, args, before }, cases.map(([typed]) => program(typed)).join("\n"));
    t.is(found.length, cases.length + 1);
    for (const [i, [typed, offered]] of cases.entries()) {
      const words = found[i]!.trim()
        .split("\n")
        .map((word) => word.replace(/\/$/, ""));
      const begun = typed.split(" ").at(-1)!;
      const fitting = words.filter((word) => word.startsWith(begun));
      t.true(
        offered.every((word) => fitting.includes(word)),
        `${typed}: ${words.join(" ")}`,
      );
      // Where few words fit, no others are offered.
      if (!begun.startsWith("/")) {
        t.deepEqual(
          fitting.filter((word) => !offered.includes(word) && !word.startsWith("--")),
          [],
          typed,
        );
      }
    }
  });
}
