/** `gatehouse completion`: prints a script with which a shell completes commands and flags. */
import { Argument, type Command } from "commander";
import { print } from "./terminal/output.js";

const shells = ["bash", "zsh", "fish"] as const;

export function addCompletion(command: Command, fullProgram: () => Promise<Command>): void {
  command
    .addArgument(new Argument("<SHELL>").choices(shells))
    .addHelpText(
      "after",
      `
Prints a script for the shell. It matches this version: print it again after an upgrade.

Examples:
  source <(gatehouse completion bash)
  gatehouse completion bash > ~/.local/share/bash-completion/completions/gatehouse
  gatehouse completion zsh > "\${fpath[1]}/_gatehouse"
  gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish`,
    )
    .action(async (shell: (typeof shells)[number]) => {
      const { completionScript } = await import("./completion-scripts.js");
      print(completionScript(shell, await fullProgram()).trimEnd());
    });
}
